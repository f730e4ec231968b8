// An estimate, a scenario that is polled, and an error, with the types of the specification.
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./outlay.js";

const key = process.env.OUTLAY_API_KEY;
const headers: Record<string, string> = key ? { Authorization: `Bearer ${key}` } : {};
const outlay = createClient<paths>({ baseUrl: process.env.OUTLAY_SERVER ?? "http://127.0.0.1:8080", headers });
const file = new URL("../../../examples/tutorials/run.json", import.meta.url);
const run: components["schemas"]["EstimateRequest"] = JSON.parse(readFileSync(file, "utf8"));

const estimate = await outlay.POST("/v1/estimate", { body: run });
console.log(estimate.data?.summary.text);

const started = await outlay.POST("/v1/scenarios", { body: { kind: "monte_carlo", base: run, trials: 2000, seed: 1 } });
const params = { path: { scenario_id: started.data?.id ?? "" } };
let scenario = (await outlay.GET("/v1/scenarios/{scenario_id}", { params })).data;
while (scenario?.state === "queued" || scenario?.state === "running") {
  await pause(1000 * Number(started.response.headers.get("Retry-After") ?? 2));
  scenario = (await outlay.GET("/v1/scenarios/{scenario_id}", { params })).data;
}
console.log(scenario?.state);

const wrong = await outlay.POST("/v1/estimate", { body: { ...run, data: { tokens: "2 tea" } } });
for (const problem of wrong.error?.errors ?? []) {
  console.log(`at ${problem.pointer}: ${problem.message}`);
}
