/* weir tokenize: text to token ids, with the bytes and offsets that each stands for. */
#include <stdlib.h>

#include "cli/chat.h"
#include "cli/feed.h"
#include "cli/input.h"
#include "cli/say.h"

typedef struct tokenize_args {
    weir_model_args model;
    weir_text_args text;
    weir_out_args out;
    bool ids;
    int bos;
} tokenize_args;

static const weir_opt own_opts[] = {
    {"ids", 'i', NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "print the ids alone, a document a line, as weir detokenize reads them", offsetof(tokenize_args, ids)},
    {"bos", 0, NULL, WEIR_OPT_CHOICE, "auto|yes|no", 0, 0, "no", "put the BOS token first; auto: as the tokenizer says",
     offsetof(tokenize_args, bos)},
};
static const weir_opt_group own_group = {"Tokens", own_opts, sizeof own_opts / sizeof *own_opts};

static const weir_opt_use options[] = {{&weir_opts_model, offsetof(tokenize_args, model)},
                                       {&weir_opts_text, offsetof(tokenize_args, text)},
                                       {&own_group, 0},
                                       {&weir_opts_out, offsetof(tokenize_args, out)},
                                       {NULL, 0}};

static const weir_opt_rule rules[] = {{"ids", WEIR_OPT_EXCLUDES, "json"}, {NULL, WEIR_OPT_NEEDS, NULL}};

/* Bytes as C would write them between quotes; what is not ASCII as \xNN, because a token may hold half a character. */
static void print_escaped(weir_str s)
{
    static const char plain_low[] = {['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    putchar('"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < sizeof plain_low && plain_low[c])
            printf("\\%c", plain_low[c]);
        else if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c >= 32 && c < 127)
            putchar(c);
        else
            printf("\\x%02x", c);
    }
    putchar('"');
}

/* The tokens of a document, BOS included. */
typedef struct token_list {
    const weir_tokenizer *tok;
    const weir_doc *doc;
    const weir_tokens *t;
    bool bos;
} token_list;

static int64_t list_count(const token_list *l)
{
    return l->t->n + l->bos;
}

static int32_t list_id(const token_list *l, int64_t i)
{
    return l->bos && i == 0 ? weir_tokenizer_bos(l->tok) : l->t->id[i - l->bos];
}

static int64_t list_off(const token_list *l, int64_t i, int64_t *len)
{
    bool is_bos = l->bos && i == 0;
    *len = is_bos ? 0 : l->t->byte_len[i - l->bos];
    return is_bos ? 0 : l->t->byte_off[i - l->bos];
}

/* Does the token also answer for bytes that no token stands for? */
static bool list_lost(const token_list *l, int64_t i)
{
    return i >= l->bos && (l->t->flags[i - l->bos] & WEIR_TOKEN_LOST);
}

static void print_ids(const token_list *l)
{
    for (int64_t i = 0; i < list_count(l); i++)
        printf("%s%d", i ? " " : "", list_id(l, i));
    putchar('\n');
}

static void print_table(const token_list *l)
{
    printf("%s# document %lld: %lld tokens, %zu bytes\n%8s %8s %5s  %s\n", l->doc->index ? "\n" : "",
           (long long)l->doc->index, (long long)list_count(l), l->doc->text.n, "id", "offset", "bytes", "token");
    for (int64_t i = 0; i < list_count(l); i++) {
        int64_t len, off = list_off(l, i, &len);
        printf("%8d %8lld %5lld  ", list_id(l, i), (long long)off, (long long)len);
        print_escaped(weir_tokenizer_bytes(l->tok, list_id(l, i)));
        puts(list_lost(l, i) ? "  (bytes beside it are lost)" : "");
    }
}

static void print_json(const token_list *l)
{
    weir_jsonw w;
    int64_t n = list_count(l), len;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_int(&w, "doc", l->doc->index);
    weir_jsonw_key_int(&w, "bytes", (int64_t)l->doc->text.n);
    weir_jsonw_key(&w, "ids");
    weir_jsonw_array(&w);
    for (int64_t i = 0; i < n; i++)
        weir_jsonw_int(&w, list_id(l, i));
    weir_jsonw_end(&w);
    weir_jsonw_key(&w, "pieces");
    weir_jsonw_array(&w);
    for (int64_t i = 0; i < n; i++) {
        weir_str piece = weir_tokenizer_piece(l->tok, list_id(l, i));
        weir_jsonw_str(&w, piece.p, piece.n);
    }
    weir_jsonw_end(&w);
    weir_jsonw_key(&w, "offsets");
    weir_jsonw_array(&w);
    for (int64_t i = 0; i < n; i++) {
        weir_jsonw_array(&w);
        int64_t off = list_off(l, i, &len);
        weir_jsonw_int(&w, off);
        weir_jsonw_int(&w, off + len);
        weir_jsonw_end(&w);
    }
    weir_jsonw_end(&w);
    weir_jsonw_key_int(&w, "lost_bytes", l->t->lost_bytes);
    weir_jsonw_end(&w);
    putchar('\n');
}

/* chat: what a document is a message of; NULL: it is a text. */
static weir_status encode(const tokenize_args *a, const weir_tokenizer *tok, weir_chat *chat, weir_doc *doc,
                          weir_tokens *t, weir_err *err)
{
    if (!chat)
        return weir_tokenizer_encode(tok, doc->text.p, doc->text.n, t, err);
    WEIR_TRY(weir_chat_encode_doc(chat, doc->text, doc->json, a->text.system, t, err));
    doc->text.n = t->n ? (size_t)(t->byte_off[t->n - 1] + t->byte_len[t->n - 1]) : 0; /* of what the template made */
    return WEIR_OK;
}

static weir_status print_documents(const tokenize_args *a, const weir_cli *cli, const weir_tokenizer *tok,
                                   weir_chat *chat, weir_docs *docs, weir_err *err)
{
    const weir_row_args rows = {.bos = a->bos};
    weir_tokens t = {0};
    weir_doc doc;
    bool more = true, bos;
    int64_t lost = 0;
    weir_status s = weir_feed_bos(&rows, tok, &bos, err);
    while (s == WEIR_OK && (s = weir_docs_next(docs, &doc, &more, err)) == WEIR_OK && more && !ferror(stdout)) {
        s = encode(a, tok, chat, &doc, &t, err);
        token_list l = {tok, &doc, &t, bos};
        if (s != WEIR_OK)
            weir_err_where(err, weir_docs_source(docs, doc.source), NULL, doc.byte_off);
        else if (a->out.json)
            print_json(&l);
        else if (a->ids)
            print_ids(&l);
        else
            print_table(&l);
        lost += t.lost_bytes;
    }
    weir_tokens_free(&t);
    if (lost)
        weir_cli_note(cli, "%lld bytes of the text are lost: this vocabulary cannot hold them", (long long)lost);
    return s;
}

static int run(weir_cli *cli, void *args)
{
    const tokenize_args *a = args;
    weir_tokenizer *tok = NULL;
    weir_chat *chat = NULL;
    weir_input in = {0};
    weir_err err = {0};
    char brook[1100];
    cli->quiet = a->out.quiet;
    const char *path = weir_model_path(&a->model, brook, sizeof brook, &err);
    weir_log log = weir_cli_log(cli);
    if (!path || weir_tokenizer_open(&tok, path, &log, &err) != WEIR_OK)
        return weir_cli_fail(cli, &err);
    int code = weir_chat_asked(&chat, cli, &a->text, false, a->bos, path, tok);
    if (code == WEIR_EXIT_OK)
        code = weir_input_open(&in, cli, &a->text, false);
    if (code == WEIR_EXIT_OK && print_documents(a, cli, tok, chat, in.docs, &err) != WEIR_OK)
        code = weir_cli_fail(cli, &err);
    weir_input_close(&in);
    weir_chat_free(chat);
    weir_tokenizer_free(tok);
    return code;
}

const weir_tool weir_tool_tokenize = {
    .name = "tokenize",
    .summary = "text to token ids, with bytes and offsets",
    .operands = "[TEXT... | --file FILE... | < text]",
    .about = "Prints the tokens of each document: id, offset in the document and length in bytes, and the bytes that "
             "the token stands for, escaped. With --json one object a document: ids, pieces as the vocabulary spells "
             "them, offsets [begin, end), and how many bytes the vocabulary could not hold.",
    .example = "weir tokenize 'Among the places of Colorado is Boulder.'\n"
               "weir tokenize --ids 'round trip' | weir detokenize",
    .options = options,
    .rules = rules,
    .args_size = sizeof(tokenize_args),
    .run = run,
};
