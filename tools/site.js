// Joined to Sphinx's search. From a folder, without a server, browsers let no page read another: results have no excerpt.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false

// Sphinx scores a word in a heading alike in all pages. Guides come first, then pages for users of other libraries, then
// the reference, whose functions win over both when their name is the query; then the project's pages and examples.
const POINTS = { Start: 10, Guides: 10, "From R": 10, "Coming from": 5 }
Scorer.score = ([page, , , , score]) =>
  score + (/^(r|python)\//.test(page) ? 4 : POINTS[HEADINGS[page]] ?? (HEADINGS[page] === "Reference" ? 2 : 0))
