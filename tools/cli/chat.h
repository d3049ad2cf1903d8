/* cli/chat.h: --chat and --system: documents are messages to the model (weir/chat.h). */
#ifndef WEIR_CLI_CHAT_H
#define WEIR_CLI_CHAT_H

#include "common.h"

/* The chat template of the model at `path`, if --chat asks for it; else *chat = NULL. ids, bos: --ids and --bos of the
 * tool. Returns an exit code; an error has been said. */
int weir_chat_asked(weir_chat **chat, const weir_cli *cli, const weir_text_args *text, bool ids, int bos,
                    const char *path, const weir_tokenizer *tok);

#endif
