// Runs a command beside emulators of its own, of tables and of queues, on free loopback ports:
//
//   node with-azurite.mjs <command> [arguments]
//
// The command finds the connection string of both in ENTABLE_AZURITE. The emulators keep nothing and
// are stopped when the command ends, whatever way it ends.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

const main = (service) =>
  fileURLToPath(new URL(`node_modules/azurite/dist/src/${service}/main.js`, import.meta.url));
const key =
  "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

// Resolves with the emulator once it listens, rejects if it ends before: the port may have been
// taken in between.
function start(service, port) {
  const emulator = spawn(
    process.execPath,
    [
      main(service),
      `--${service}Host`, "127.0.0.1",
      `--${service}Port`, String(port),
      "--disableTelemetry",
      "--inMemoryPersistence",
      "--skipApiVersionCheck",
    ],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  return new Promise((resolve, reject) => {
    let output = "";
    const read = (chunk) => {
      output = (output + chunk).slice(-4000);
      if (/successfully (started|listens) on/.test(output)) resolve(emulator);
    };
    emulator.stdout.on("data", read);
    emulator.stderr.on("data", read);
    emulator.on("exit", (code) => reject(new Error(`azurite ended with ${code}: ${output}`)));
    emulator.on("error", reject);
  });
}

async function startSomewhere(service) {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    try {
      return { port, emulator: await start(service, port) };
    } catch (error) {
      if (attempt === 3) throw error;
    }
  }
}

const [command, ...args] = process.argv.slice(2);
if (!command) {
  console.error("usage: node with-azurite.mjs <command> [arguments]");
  process.exit(2);
}
const tables = await startSomewhere("table");
const queues = await startSomewhere("queue").catch((error) => {
  tables.emulator.kill("SIGTERM");
  throw error;
});
const connection =
  "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;" +
  `AccountKey=${key};TableEndpoint=http://127.0.0.1:${tables.port}/devstoreaccount1;` +
  `QueueEndpoint=http://127.0.0.1:${queues.port}/devstoreaccount1;`;
const child = spawn(command, args, {
  stdio: "inherit",
  env: { ...process.env, ENTABLE_AZURITE: connection },
});
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => child.kill(signal));
}
function stop(code) {
  for (const { emulator } of [tables, queues]) {
    emulator.removeAllListeners("exit");
    emulator.kill("SIGTERM");
  }
  process.exit(code);
}
child.on("exit", (code, signal) => stop(signal ? 1 : code));
child.on("error", (error) => {
  console.error(`${command}: ${error.message}`);
  stop(1);
});
