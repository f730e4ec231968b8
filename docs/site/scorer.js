/* What search shows first: pages that begin with a reader's question, then guides, then what is long and holds every word. */
var Scorer = {
  score: (result) => {
    const page = result[0];
    if (page.startsWith("start/") || page === "reference/glossary") return result[4] + 6;
    if (/^decisions\/|^explanation\/(accuracy|architecture)|^reference\/(http|commands)$/.test(page)) return result[4] - 4;
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
