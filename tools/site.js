// Part of Sphinx's search. Opened as a file, a page cannot read another page: results have no excerpts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false

// Sphinx gives a word in a heading the same score on each page. These points put guides first, then the pages of Start
// and Coming from, the reference and the project. A function whose name is the query stays before a guide's text.
const POINTS = { Guides: 10, "From R": 10, Start: 9, "Coming from": 5, Reference: 4 }
Scorer.score = ([page, , , , score]) =>
  score + (POINTS[/^(r|python)\//.test(page) ? "Reference" : HEADINGS[page]] ?? 0)
