/* What search shows first: guides, and pages that begin with a reader's question; last what is long and holds every word. */
var Scorer = {
  score: (result) => {
    const page = result[0];
    if (page === "start/questions") return result[4] * 1.3;
    if (page === "reference/glossary" || page.startsWith("how-to/")) return result[4] * 1.15;
    if (/^decisions\/|^explanation\/(accuracy\/|architecture|reliability)|^reference\/(http|commands)$|index$/.test(page)) return result[4] * 0.5;
    return result[4];
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
