// Runs a command beside an emulator of its own, on a free loopback port:
//
//   node with-azurite.mjs <command> [arguments]
//
// The command finds the emulator's connection string in ENTABLE_AZURITE. The emulator keeps nothing
// and is stopped when the command ends, whatever way it ends.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("node_modules/azurite/dist/src/table/main.js", import.meta.url));
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
function start(port) {
  const emulator = spawn(
    process.execPath,
    [
      main,
      "--tableHost", "127.0.0.1",
      "--tablePort", String(port),
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
      if (output.includes("successfully started")) resolve(emulator);
    };
    emulator.stdout.on("data", read);
    emulator.stderr.on("data", read);
    emulator.on("exit", (code) => reject(new Error(`azurite ended with ${code}: ${output}`)));
    emulator.on("error", reject);
  });
}

async function startSomewhere() {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    try {
      return { port, emulator: await start(port) };
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
const { port, emulator } = await startSomewhere();
const connection =
  "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;" +
  `AccountKey=${key};TableEndpoint=http://127.0.0.1:${port}/devstoreaccount1;`;
const child = spawn(command, args, {
  stdio: "inherit",
  env: { ...process.env, ENTABLE_AZURITE: connection },
});
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => child.kill(signal));
}
function stop(code) {
  emulator.removeAllListeners("exit");
  emulator.kill("SIGTERM");
  process.exit(code);
}
child.on("exit", (code, signal) => stop(signal ? 1 : code));
child.on("error", (error) => {
  console.error(`${command}: ${error.message}`);
  stop(1);
});
