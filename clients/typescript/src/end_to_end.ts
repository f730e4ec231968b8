// What a program does with the types of the specification, against the service of OUTLAY_SERVER.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./outlay.js";

type Schemas = components["schemas"];

const key = process.env.OUTLAY_API_KEY;
const outlay = createClient<paths>({
  baseUrl: process.env.OUTLAY_SERVER ?? "http://127.0.0.1:8080",
  headers: key ? { Authorization: `Bearer ${key}` } : {},
});

const run: Schemas["EstimateRequest"] = {
  model: { preset: "llama-2-7b" },
  data: { tokens: "1T" },
  hardware: { accelerator: "h100", count: 256 },
  price: { usd_per_accelerator_hour: 2.5 },
};

/** The answer of a request, or its problem as an error. */
function answered<T>(response: { data?: T; error?: Schemas["Problem"] }): T {
  if (response.data === undefined) {
    throw new Error(response.error?.detail ?? "no answer");
  }
  return response.data;
}

async function askQuestions(): Promise<void> {
  const estimate = answered(await outlay.POST("/v1/estimate", { body: run }));
  assert.ok(estimate.cost.total_usd !== null && estimate.cost.total_usd.p50 > 0);
  const compared = answered(
    await outlay.POST("/v1/compare", {
      body: { workload: { model: run.model, data: run.data }, candidates: { accelerators: ["h100-sxm"] } },
    }),
  );
  assert.equal(compared.options[0]?.rank, 1);
  const asked = answered(await outlay.POST("/v1/ask", { body: { text: "llama 3 8b on 1T tokens, 512 h100", answer: true } }));
  console.log([estimate.summary.text, compared.summary.text, asked.summary?.text].join("\n"));
}

async function listEveryModel(): Promise<void> {
  const names: string[] = [];
  let cursor: string | null | undefined = undefined;
  do {
    const page: Schemas["ModelEntryPage"] = answered(
      await outlay.GET("/v1/models", { params: { query: { limit: 10, ...(cursor ? { cursor } : {}) } } }),
    );
    names.push(...page.items.map((model) => model.name));
    cursor = page.next_cursor;
  } while (cursor !== null);
  assert.ok(names.length > 10 && new Set(names).size === names.length);
  console.log(`${names.length} models`);
}

async function waitForScenario(): Promise<void> {
  const { data, response } = await outlay.POST("/v1/scenarios", { body: { kind: "monte_carlo", base: run, trials: 200, seed: 1 } });
  assert.ok(data);
  const params = { path: { scenario_id: data.id } };
  let found = answered(await outlay.GET("/v1/scenarios/{scenario_id}", { params }));
  while (found.state === "queued" || found.state === "running") {
    await pause(1000 * Number(response.headers.get("Retry-After") ?? 2));
    found = answered(await outlay.GET("/v1/scenarios/{scenario_id}", { params }));
  }
  assert.equal(found.state, "succeeded");
  console.log(`scenario ${found.state}`);
}

async function trackProgram(): Promise<void> {
  const program = answered(await outlay.POST("/v1/track/programs", { body: { name: "assistant 7B", budget_usd: 100_000 } }));
  const started = answered(
    await outlay.POST("/v1/track/programs/{program_id}/runs", { params: { path: { program_id: program.id } }, body: { name: "main" } }),
  );
  const at = new Date(Date.now() - 3_600_000).toISOString();
  const added = answered(
    await outlay.POST("/v1/track/runs/{run_id}/events", {
      params: { path: { run_id: started.id } },
      body: { events: [{ id: "e1", type: "progress", at, step: 1, accelerator_hours: 256, cost_usd: 640 }] },
    }),
  );
  assert.equal(added.accepted, 1);
  const status = answered(await outlay.GET("/v1/track/programs/{program_id}/status", { params: { path: { program_id: program.id } } }));
  console.log(status.summary.text);
}

async function makeAnError(): Promise<void> {
  const { error } = await outlay.POST("/v1/estimate", { body: { ...run, hardware: { accelerator: "no-such-thing", count: 1 } } });
  assert.ok(error?.status === 422 && error.errors?.[0]?.pointer === "/hardware/accelerator");
  console.log(error.detail);
}

await askQuestions();
await listEveryModel();
await trackProgram();
await makeAnError();
await waitForScenario();
