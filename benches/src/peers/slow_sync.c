/* Makes each sync of a file take longer, in every program that loads this first: LD_PRELOAD.
   ENTABLE_SYNC_MICROSECONDS is the time that each takes in addition, less than a second. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int sync_slowly(const char *name, int file) {
    const char *microseconds = getenv("ENTABLE_SYNC_MICROSECONDS");
    struct timespec delay = {0, microseconds ? atol(microseconds) * 1000 : 0};
    nanosleep(&delay, NULL);
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return sync(file);
}

int fsync(int file) { return sync_slowly("fsync", file); }

int fdatasync(int file) { return sync_slowly("fdatasync", file); }
