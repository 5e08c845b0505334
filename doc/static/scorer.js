/* Of objects with the searched name, those with the shortest path come first: rbd_ros.X. */
var Scorer = {
  score: ([docname, title, anchor, descr, score, filename, kind]) =>
    score + (title.startsWith("rbd_ros.") ? 30 - 5 * title.split(".").length : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
