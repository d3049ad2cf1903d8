/* rome/keys.h: second moments made on the way, where no file brings them: of several layers in one run over a text. */
#ifndef WEIR_ROME_KEYS_H
#define WEIR_ROME_KEYS_H

#include "texts.h"

/* m [n_layers of e]: the moments of its layers' keys over the texts (so many as give `enough` keys; 0: all); each is
 * the caller's, NULL after an error, which has been said. Returns an exit code. */
int weir_rome_keys(const weir_editor *e, const weir_rome_texts *t, bool bos, int64_t enough, weir_moments **m);

#endif
