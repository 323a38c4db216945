/* Makes each sync of a file take longer, in every program that loads this first: LD_PRELOAD.
   ENTABLE_SYNC_MICROSECONDS is the time that each takes in addition. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static int sync_slowly(const char *name, int file) {
    const char *delay = getenv("ENTABLE_SYNC_MICROSECONDS");
    long end = microseconds() + (delay ? atol(delay) : 0);
    /* A sleep, or a turn given to others, can last until the kernel's next tick, up to 4 ms later. */
    while (microseconds() < end) {
    }
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return sync(file);
}

int fsync(int file) { return sync_slowly("fsync", file); }

int fdatasync(int file) { return sync_slowly("fdatasync", file); }
