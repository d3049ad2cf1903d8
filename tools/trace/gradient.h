/* trace/gradient.h: trace --loss: what is differentiated, and the way back of each batch. README.md beside this file
 * has the definitions.
 *
 *     weir_gradient g = {0};
 *     code = weir_gradient_parse(&g, &session, text);     // the tokenizer is open by now
 *     code = weir_gradient_open(&g, &session);            // the run is there, and not prepared
 *     ... for each batch, behind its forward pass with WEIR_FINAL: weir_gradient_back(&g, batch, &err);
 *     weir_gradient_close(&g);                            // before the session
 */
#ifndef WEIR_TRACE_GRADIENT_H
#define WEIR_TRACE_GRADIENT_H

#include "cli/session.h"

#include <weir/grad.h>

typedef struct weir_gradient {
    const weir_session *s;
    weir_loss_kind kind;
    bool mean;    /* NLL: over the document's tokens, not their sum */
    int n_tokens; /* LOGIT: of the first token, less that of the second, if there is one */
    int32_t token[2];
    weir_grad *grad;
    weir_loss_term *term; /* [2 * rows of a batch] */
} weir_gradient;

/* Is it a loss at all? What can be said without a model; returns an exit code, an error has been said. */
int weir_gradient_check(const weir_cli *cli, const char *text);
int weir_gradient_parse(weir_gradient *g, const weir_session *s, const char *text);
int weir_gradient_open(weir_gradient *g, const weir_session *s);
void weir_gradient_close(weir_gradient *g);

/* Back from the pass that was this batch's: the hooks hear the gradients that they want. Errors as of
 * weir_grad_backward. */
WEIR_CHECKED weir_status weir_gradient_back(weir_gradient *g, const weir_batch *b, weir_err *err);

#endif
