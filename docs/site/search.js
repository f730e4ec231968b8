/* Answers questions as people type them: pages with more, and rarer, of the words come first, and no page has to have them all. */
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const IN_HEADING = 3;
  const LEAST_SHARE = 0.4;

  /* Pages with a word, by their numbers, with what it counts there. */
  const pagesWith = (word, terms, headings) => {
    const found = new Map();
    const take = (files, worth) => [files ?? []].flat().forEach((file) => found.set(file, Math.max(worth, found.get(file) ?? 0)));
    take(Object.hasOwn(terms, word) ? terms[word] : undefined, 1);
    take(Object.hasOwn(headings, word) ? headings[word] : undefined, IN_HEADING);
    if (found.size === 0 && word.length > 3) {
      Object.keys(terms).filter((term) => term.includes(word)).forEach((term) => take(terms[term], 1));
    }
    return found;
  };

  Search.performTermsSearch = (asked, excluded) => {
    const { terms, titleterms, docnames, titles, filenames } = Search._index;
    const scores = new Map();
    let most = 0;
    asked.forEach((word) => {
      const found = pagesWith(word, terms, titleterms);
      if (found.size === 0) return;
      const rarity = Math.log(1 + docnames.length / found.size);
      most += rarity;
      found.forEach((worth, file) => scores.set(file, (scores.get(file) ?? 0) + rarity * worth));
    });
    excluded.forEach((word) => pagesWith(word, terms, titleterms).forEach((_, file) => scores.delete(file)));
    return [...scores]
      .filter(([, score]) => score >= LEAST_SHARE * most)
      .map(([file, score]) => [docnames[file], titles[file], "", null, score, filenames[file], SearchResultKind.text]);
  };
});
