// The tooltips of terms, of the table that Python reads, too: shareq_widgets/terms.py says what its columns are.

import TABLE from "../terms.json";

/** @type {Map<string, string>} */
const MEANINGS = new Map(Object.entries(TABLE).flatMap(([name, { meaning, words }]) => words.map((word) => [word.toLowerCase(), `${name}: ${meaning}.`])));
const WORDS = [...MEANINGS.keys()].sort((a, b) => b.length - a.length).join("|");
const WORD = new RegExp(`(?<![\\w.])(?:${WORDS})(?!\\.?\\w)`, "gi");

/**
 * The tooltip of a text: its own title, and the meanings of its terms that the title does not have yet.
 * @param {string} text @param {string} [title]
 */
export function explained(text, title = "") {
  const found = new Set((text.match(WORD) ?? []).map((word) => MEANINGS.get(word.toLowerCase()) ?? ""));
  return [title, ...[...found].filter((meaning) => !title.includes(meaning))].filter(Boolean).join("\n");
}
