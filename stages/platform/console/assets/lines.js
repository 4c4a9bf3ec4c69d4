// What is taken away and what comes, line by line: the longest common part stays.
import { part } from "./dialog.js";

function lines(before, after) {
  const [a, b] = [before, after].map((text) => (text ? text.replace(/\n$/, "").split("\n") : []));
  let [start, m, n] = [0, a.length, b.length];
  while (start < m && start < n && a[start] === b[start]) start += 1;
  for (; start < m && start < n && a[m - 1] === b[n - 1]; n -= 1) m -= 1;
  const [x, y] = [a.slice(start, m), b.slice(start, n)];
  if (x.length * y.length > 1e6) return [...x.map((line) => ["-", line]), ...y.map((line) => ["+", line])];
  const long = Array.from({ length: x.length + 1 }, () => new Uint32Array(y.length + 1));
  for (let i = x.length - 1; i >= 0; i -= 1) {
    for (let j = y.length - 1; j >= 0; j -= 1) long[i][j] = x[i] === y[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
  }
  const found = a.slice(Math.max(0, start - 3), start).map((line) => [" ", line]);
  for (let i = 0, j = 0; i < x.length || j < y.length;) {
    if (i < x.length && j < y.length && x[i] === y[j]) found.push([" ", x[i++], j++]);
    else if (j >= y.length || (i < x.length && long[i + 1][j] >= long[i][j + 1])) found.push(["-", x[i++]]);
    else found.push(["+", y[j++]]);
  }
  return [...found, ...a.slice(m, m + 3).map((line) => [" ", line])];
}

export function difference(before, after) {
  const table = part("table", "", { class: "diff" });
  for (const [sign, line] of lines(before, after)) {
    const row = table.insertRow();
    row.className = { "-": "gone", "+": "new" }[sign] ?? "";
    row.insertCell().textContent = sign;
    row.insertCell().textContent = line;
  }
  return table;
}
