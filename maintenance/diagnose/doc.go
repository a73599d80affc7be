// Package diagnose tells the truth about an outbox table from the database's own
// counters: what its statements cost, which plans they run by, whether the table
// fits in memory and its log under the limit, which index is dead weight, what
// sessions wait for, and what got worse.
//
// It only reads, on one connection that loses every deadlock. Each section
// collects a struct of facts with statements of its own, and judges it by a pure
// function: the judgement is tested with numbers, the collecting against an
// engine. A section that may not read says which GRANT it lacks, one that fails
// says why, and the others go on.
//
// Estimated plans are no evidence. Figures here were counted while the
// statements ran, except those of the section on physics that say they are
// arithmetic.
package diagnose
