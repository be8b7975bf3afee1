// What a token is drawn from: the rule of transformer/sampling.reshaped, in the same order and in float32 as there.
const f32 = Math.fround;

// Log-probabilities under these settings, and for each token the setting that took it away, or "".
function reshaped(scores, { temperature, top_k, top_p, min_p }) {
  const most = largest(scores);
  const shaped = logSoftmax(scores.map((score) => f32(score - most) / f32(temperature)));
  const order = Array.from(shaped.keys()).sort((a, b) => shaped[b] - shaped[a] || a - b);
  const cut = new Array(shaped.length).fill("");
  if (top_k) for (const token of order.slice(top_k)) cut[token] = "top-k";
  if (top_p < 1) {
    const kept = order.filter((token) => !cut[token]);
    const shares = logSoftmax(Float32Array.from(kept, (token) => shaped[token])).map(Math.exp);
    let sum = 0;
    kept.forEach((token, place) => {
      sum += shares[place];
      if (!(f32(f32(sum) - shares[place]) < f32(top_p))) cut[token] = "top-p";
    });
  }
  if (min_p) {
    const least = f32(shaped[order[0]] + f32(Math.log(f32(min_p))));
    for (const token of order) if (!(shaped[token] >= least)) cut[token] ||= "min-p";
  }
  cut[order[0]] = ""; // one token always stays
  return { logProbs: logSoftmax(shaped.map((score, token) => (cut[token] ? -Infinity : score))), cut };
}

function logSoftmax(values) {
  const most = largest(values);
  const sum = values.reduce((total, value) => total + Math.exp(value - most), 0);
  const log = f32(Math.log(sum));
  return values.map((value) => f32(value - most) - log);
}

function largest(values) {
  return values.reduce((most, value) => Math.max(most, value), -Infinity);
}
