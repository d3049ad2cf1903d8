/* weir/chat.h: a conversation as the text that a model was trained to answer: the model's own chat template, rendered.
 *
 *     weir_chat *chat;
 *     weir_chat_open(&chat, "SmolLM2-135M-Instruct/", tok, &err);      // or a .gguf file
 *     const weir_turn turn[] = {{"user", {"Why is the sky blue?", 20}}};
 *     weir_tokens t = {0};
 *     weir_chat_encode(chat, turn, 1, true, &t, &err);
 *     weir_tokens_free(&t);
 *     weir_chat_free(chat);
 *
 * Templates are programs in Jinja. What is run here is the part of Jinja 3.1 that the templates of SmolLM2 and other
 * ChatML models, Llama 2 and 3, Mistral, Gemma 2 and Qwen 2.5 are written in, in the environment of Hugging Face
 * transformers (5.24, utils/chat_template_utils.py: trim_blocks and lstrip_blocks on, `messages`,
 * `add_generation_prompt`, `tools` and `documents` none, `bos_token`, `eos_token`, raise_exception, namespace).
 * lib/tokenizer/ CHAT.md lists it. Whatever else a template reaches is refused with the construct's name and its line:
 * a text that is nearly right would be answered, and nobody would know. `strftime_now` is not defined, so that a
 * template that asks whether it is takes its fixed date, and the same text has the same tokens every day.
 */
#ifndef WEIR_CHAT_H
#define WEIR_CHAT_H

#include "tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One thread's at a time. */
typedef struct weir_chat weir_chat;

typedef struct weir_turn {
    const char *role; /* "system", "user", "assistant" */
    weir_str content; /* UTF-8, or any bytes */
} weir_turn;

/* The template of a model: path is a Hugging Face directory (chat_template.jinja, else `chat_template` of
 * tokenizer_config.json; of several the one that is called "default") or a GGUF file (tokenizer.chat_template). tok is
 * borrowed. Errors: no template (WEIR_E_UNSUPPORTED: a base model has none), one that does not parse (WEIR_E_FORMAT) or
 * has statements outside the subset (WEIR_E_UNSUPPORTED), with file and line. */
WEIR_API WEIR_CHECKED weir_status weir_chat_open(weir_chat **out, const char *path, const weir_tokenizer *tok,
                                                 weir_err *err);
/* A template's text (copied); name: what errors call it. tok may be NULL: no bos_token and eos_token, no encoding. */
WEIR_API WEIR_CHECKED weir_status weir_chat_new(weir_chat **out, const char *text, size_t n, const char *name,
                                                const weir_tokenizer *tok, weir_err *err);
WEIR_API void weir_chat_free(weir_chat *c);

/* The text of a conversation. generation: it ends where the model's answer begins. *text is borrowed until the next
 * call. Errors: what the template itself raises (WEIR_E_ARG, its own words: roles that do not alternate, ...), and what
 * it reaches outside the subset (WEIR_E_UNSUPPORTED), with the line. */
WEIR_API WEIR_CHECKED weir_status weir_chat_render(weir_chat *c, const weir_turn *turn, int64_t n, bool generation,
                                                   weir_str *text, weir_err *err);
/* And its tokens: those of the template's special tokens are special, and no BOS is added that it does not have.
 * Offsets are those of the rendered text. */
WEIR_API WEIR_CHECKED weir_status weir_chat_encode(weir_chat *c, const weir_turn *turn, int64_t n, bool generation,
                                                   weir_tokens *out, weir_err *err);
/* The same for a document: what it holds is a message of the user, behind one of the system if that is not NULL; or,
 * with json, JSON: a string, which is a message, or a list of {"role": ..., "content": ...}, which is a conversation
 * (then system goes before it, unless it has one of its own). */
WEIR_API WEIR_CHECKED weir_status weir_chat_encode_doc(weir_chat *c, weir_str doc, bool json, const char *system,
                                                       weir_tokens *out, weir_err *err);

#ifdef __cplusplus
}
#endif
#endif
