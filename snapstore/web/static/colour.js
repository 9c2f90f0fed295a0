// Simple syntax highlighting: comments, strings, numbers and the keywords most languages share. Not a parser, so the
// result may be wrong.

import { visible } from "./dom.js";

const WORDS =
  "abstract and as assert async await bool boolean break case catch char class const continue def default del delete do " +
  "double elif else end enum except export extends extern false finally float fn for from func function if impl " +
  "implements import in instanceof int interface is lambda let loop long match mod module mut namespace new nil None " +
  "nonlocal not null or override package pass private protected pub public raise readonly ref return self static " +
  "string struct super switch then this throw trait True try type typeof undefined union unless unsafe use using var " +
  "void when where while with yield true False";
const KEYWORDS = new Set(WORDS.split(" "));
const HASH =
  /\.(py|pyi|rb|sh|bash|zsh|fish|ya?ml|toml|ini|cfg|conf|pl|r|mk|tf|nix|ex|exs)$|(^|\/)(Makefile|Dockerfile|\.[a-z]+ignore)$/i;
const PROSE = /\.(md|markdown|rst|txt|csv|tsv|log|lock)$|(^|\/)(README|LICENSE|CHANGELOG)[^/]*$/i;
const DASHES = /\.(sql|lua|hs|elm|ada)$/i;

const TOKEN = {
  hash: /(#.*$)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)/g,
  dashes: /(--.*$)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)/g,
  slashes:
    /(\/\/.*$|\/\*.*?(?:\*\/|$)|^\s*\*\s.*$|<!--.*?-->)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)/g,
};

export function language(path) {
  if (PROSE.test(path)) return null;
  return HASH.test(path) ? TOKEN.hash : DASHES.test(path) ? TOKEN.dashes : TOKEN.slashes;
}

/** Splits a line into pieces: [text, class]. */
export function pieces(line, tokens) {
  if (!tokens || line.length > 500) return [[line, ""]];
  const found = [];
  let from = 0;
  for (const match of line.matchAll(tokens)) {
    const kind = match[1]
      ? "c-comment"
      : match[2]
        ? "c-string"
        : match[3]
          ? "c-number"
          : KEYWORDS.has(match[4])
            ? "c-word"
            : "";
    if (!kind) continue;
    if (match.index > from) found.push([line.slice(from, match.index), ""]);
    found.push([match[0], kind]);
    from = match.index + match[0].length;
  }
  if (from < line.length) found.push([line.slice(from), ""]);
  return found;
}

/** Paints a line into an element. `marked` is the range [from, to) that differs from the other side. */
export function paint(element, line, tokens, marked) {
  let at = 0;
  for (const [text, kind] of pieces(line, tokens)) {
    for (const [part, inside] of split(text, at, marked)) put(element, part, kind, inside);
    at += text.length;
  }
}

function split(text, at, marked) {
  if (!marked) return [[text, false]];
  const from = Math.min(Math.max(marked[0] - at, 0), text.length);
  const to = Math.min(Math.max(marked[1] - at, 0), text.length);
  return [
    [text.slice(0, from), false],
    [text.slice(from, to), true],
    [text.slice(to), false],
  ].filter(([part]) => part);
}

function put(element, text, kind, inside) {
  const shown = visible(text);
  if (!kind && !inside) {
    element.append(shown);
    return;
  }
  const span = document.createElement(inside ? "mark" : "span");
  if (kind) span.className = kind;
  span.textContent = shown;
  element.append(span);
}
