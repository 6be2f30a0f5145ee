// typescript.mjs MAJOR MODE SERVER: an official TypeScript client, told what to call line by line.
//
// First writes {"protocol", "instructions", "tools"}; then, for each line {"tool", "arguments"},
// a line {"text", "structured", "failed"} or {"error"}. Runs in the folder of its package.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [major, mode, server] = process.argv.slice(2);
const here = createRequire(process.env.SDK_FOLDER + "/any.js");
const load = (name) => import(pathToFileURL(here.resolve(name)).href);
const [main, stdio] =
  major === "1"
    ? ["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/stdio.js"]
    : ["@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio"];
const { Client } = await load(main);
const { StdioClientTransport } = await load(stdio);

const options = mode === "auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: "typescript", version: "0" }, options);
client.onerror = (error) => console.error(String(error));
const env = { HOME: process.env.HOME };
const transport = new StdioClientTransport({ command: server, args: [], stderr: "inherit", env });
// How a client of 1.x tells its transport; 2.x has a method of its own.
let told = null;
transport.setProtocolVersion = (version) => (told = version);
await client.connect(transport);

const say = (value) => process.stdout.write(JSON.stringify(value) + "\n");
const { tools } = await client.listTools();
const protocol = client.getNegotiatedProtocolVersion?.() ?? told;
say({ protocol, instructions: client.getInstructions(), tools });
for await (const line of createInterface({ input: process.stdin })) {
  const { tool, arguments: given } = JSON.parse(line);
  try {
    const result = await client.callTool({ name: tool, arguments: given });
    const text = result.content.map((block) => block.text).join("\n");
    say({ text, structured: result.structuredContent ?? null, failed: result.isError === true });
  } catch (error) {
    say({ error: `${error.code}: ${error.message}` });
  }
}
await client.close();
