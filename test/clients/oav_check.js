// Judges recorded traffic by the published OpenAPI documents.
//
// Usage: node oav_check.js SPEC_DIRECTORY EXCHANGES, where EXCHANGES is a JSON file with an array of
// {method, url, request_headers, request_body, status, response_headers, response_body}.
// Prints a JSON array of violations: {version, method, path, status, side, code, where, message}.
"use strict";
const fs = require("fs");
const { LiveValidator } = require("oav");

const [specs, file] = process.argv.slice(2);
const lower = (pairs) => Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]));

async function main() {
  const validator = new LiveValidator({
    directory: specs,
    swaggerPathsPattern: ["*.json"],
    excludedSwaggerPathsPattern: ["common-types/**", "examples/**"],
    isPathCaseSensitive: false,
    loadValidatorInInitialize: true,
    isArmCall: true,
    git: { shouldClone: false },
  });
  await validator.initialize();
  const violations = [];
  let judged = 0;
  for (const exchange of JSON.parse(fs.readFileSync(file, "utf8"))) {
    const pair = {
      liveRequest: {
        url: exchange.url,
        method: exchange.method,
        headers: lower(exchange.request_headers),
        body: exchange.request_body ?? undefined,
      },
      liveResponse: {
        statusCode: String(exchange.status),
        headers: lower(exchange.response_headers),
        body: exchange.response_body ?? undefined,
      },
    };
    const result = await validator.validateLiveRequestResponse(pair);
    const [path, query] = exchange.url.split("?");
    const version = new URLSearchParams(query).get("api-version");
    for (const [side, outcome] of [
      ["request", result.requestValidationResult],
      ["response", result.responseValidationResult],
    ]) {
      if (outcome.runtimeException) {
        violations.push({ version, method: exchange.method, path, status: exchange.status, side, code: outcome.runtimeException.code, where: "", message: outcome.runtimeException.message });
      } else {
        judged += 1;
      }
      for (const issue of outcome.errors ?? []) {
        violations.push({ version, method: exchange.method, path, status: exchange.status, side, code: issue.code, where: (issue.pathsInPayload ?? []).join(" "), message: issue.message });
      }
    }
  }
  fs.writeSync(1, JSON.stringify({ judged, violations }));
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
