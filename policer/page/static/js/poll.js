// Polls while a view needs the result.

import { Problem } from "./api.js";
import { forget, report } from "./health.js";
import { pause, untilSeen } from "./wait.js";

/**
 * Do some work now and every so many seconds.
 *
 * source: what people call what is asked for; where asking fails, it is stale since the last time
 * that it went well.
 * onProblem: is told of each refusal, and returns true where asking again is in vain.
 */
export async function poll(source, seconds, signal, work, onProblem = () => false) {
  let wentWell = Date.now();
  while (!signal.aborted) {
    try {
      await work();
      wentWell = Date.now();
      if (!signal.aborted) report(source, null);
    } catch (error) {
      if (signal.aborted) break;
      if (!(error instanceof Problem)) throw error;
      if (onProblem(error)) break;
      report(source, wentWell, error.message);
    }
    await pause(1000 * seconds, signal);
    await untilSeen(signal);
  }
  forget(source);
}
