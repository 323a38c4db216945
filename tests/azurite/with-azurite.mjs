// Runs a command beside emulators of its own, of tables, queues and blobs, on free loopback ports:
//
//   node with-azurite.mjs [--tables <entable>] <command> [arguments]
//
// With `--tables`, the program `entable` serves the tables, in place of the emulator.
// The command finds the connection string of all in ENTABLE_AZURITE. The container of blobs is `entable`.
// The emulators keep nothing and are stopped when the command ends, whatever way it ends.
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
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

// Resolves with a server of tables in memory once it listens. It says where in its first line.
function serveTables(program) {
  const server = spawn(program, ["--json", "serve", "--listen", "127.0.0.1:0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return new Promise((resolve, reject) => {
    let output = "";
    server.stdout.on("data", (chunk) => {
      output += chunk;
      if (!output.includes("\n")) return;
      resolve({ port: Number(new URL(JSON.parse(output).endpoint).port), emulator: server });
    });
    server.on("exit", (code) => reject(new Error(`${program} serve ended with ${code}`)));
    server.on("error", reject);
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

// Creates the container of the tests: the client of blobs that they use creates none.
async function createContainer(port) {
  const path = "/devstoreaccount1/entable";
  const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-08-06" };
  const signed = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
  const text = `PUT${"\n".repeat(12)}${signed.join("")}/devstoreaccount1${path}\nrestype:container`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
  const answer = await fetch(`http://127.0.0.1:${port}${path}?restype=container`, {
    method: "PUT",
    headers: { ...headers, authorization: `SharedKey devstoreaccount1:${signature}` },
  });
  if (answer.status !== 201) {
    throw new Error(`the container was not created: ${answer.status} ${await answer.text()}`);
  }
}

const given = process.argv.slice(2);
const tables = given[0] === "--tables" ? given.splice(0, 2)[1] : undefined;
const [command, ...args] = given;
if (!command) {
  console.error("usage: node with-azurite.mjs [--tables <entable>] <command> [arguments]");
  process.exit(2);
}
const running = [];
function stopEmulators() {
  for (const emulator of running) {
    emulator.removeAllListeners("exit");
    emulator.kill("SIGTERM");
  }
}
const ports = {};
try {
  for (const service of ["table", "queue", "blob"]) {
    const isServed = service === "table" && tables;
    const { port, emulator } = await (isServed ? serveTables(tables) : startSomewhere(service));
    ports[service] = port;
    running.push(emulator);
  }
  await createContainer(ports.blob);
} catch (error) {
  stopEmulators();
  throw error;
}
const connection =
  "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;" +
  `AccountKey=${key};TableEndpoint=http://127.0.0.1:${ports.table}/devstoreaccount1;` +
  `QueueEndpoint=http://127.0.0.1:${ports.queue}/devstoreaccount1;` +
  `BlobEndpoint=http://127.0.0.1:${ports.blob}/devstoreaccount1;`;
const child = spawn(command, args, {
  stdio: "inherit",
  env: { ...process.env, ENTABLE_AZURITE: connection },
});
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => child.kill(signal));
}
function stop(code) {
  stopEmulators();
  process.exit(code);
}
child.on("exit", (code, signal) => stop(signal ? 1 : code));
child.on("error", (error) => {
  console.error(`${command}: ${error.message}`);
  stop(1);
});
