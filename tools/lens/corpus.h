/* lens/corpus.h: logit-lens --corpus: statistics of a whole text instead of its positions, and results of it that are
 * shown again or joined (weir/survey.h).
 *
 *     corpus.c        what the command line says of it; the sink that counts; results from files
 *     corpus_show.c   the outputs
 *     corpus_text.c   the one for people
 *     corpus_plot.c   the picture
 */
#ifndef WEIR_TOOLS_LENS_CORPUS_H
#define WEIR_TOOLS_LENS_CORPUS_H

#include "job.h"

/* Reads the operands: results, or what --corpus is to read; and refuses what does not go with that. */
int weir_lens_corpus_options(weir_lens_job *j);
/* Is this about a whole text? */
bool weir_lens_is_corpus(const weir_lens_job *j);
/* --corpus: feeds the statistics and shows them. */
int weir_lens_corpus_put(weir_lens_job *j);
/* Results that the operands name: joined, and shown. */
int weir_lens_corpus_results(weir_lens_job *j);

/* --- outputs */

/* Is the place of the output free? */
int weir_lens_corpus_check_output(const weir_lens_job *j);
int weir_lens_corpus_show(const weir_lens_job *j, const weir_survey *s);
void weir_lens_corpus_text(FILE *out, const weir_survey *s);
/* SVG; false: out of memory. */
bool weir_lens_corpus_plot(FILE *out, const weir_survey *s);
/* What the text was, for a head. */
void weir_lens_corpus_input(char *buf, size_t n, const weir_survey *s);

#endif
