// From a folder, without a server, browsers let no page read another, so that what is found is listed without its words.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false
