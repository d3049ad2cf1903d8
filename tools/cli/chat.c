#include "chat.h"

#include "say.h"

int weir_chat_asked(weir_chat **chat, const weir_cli *cli, const weir_text_args *text, bool ids, int bos,
                    const char *path, const weir_tokenizer *tok)
{
    weir_err err = {0};
    *chat = NULL;
    if (!text->chat)
        return text->system ? weir_cli_usage(cli, "--system has a meaning only with --chat") : WEIR_EXIT_OK;
    if (ids)
        return weir_cli_usage(cli, "--chat and --ids exclude each other: a chat template is about text");
    if (bos == WEIR_BOS_YES)
        return weir_cli_usage(cli, "--chat and --bos yes exclude each other: the template says where BOS stands");
    return weir_chat_open(chat, path, tok, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(cli, &err);
}
