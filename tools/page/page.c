#include "page.h"

#include <stdlib.h>
#include <string.h>

const char *const *weir_page_lines(FILE *out, const char *const *line)
{
    for (; *line && strcmp(*line, "@data\n") != 0; line++)
        fputs(*line, out);
    return *line ? line + 1 : line;
}

bool weir_page_head(FILE *out, void (*put)(weir_jsonw *w, const void *ctx), const void *ctx)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return false;
    weir_jsonw w;
    weir_jsonw_init(&w, f);
    put(&w, ctx);
    bool ok = !ferror(f);
    ok = fclose(f) == 0 && ok;
    fputs("<script type=\"application/json\" id=\"head\">", out);
    for (size_t i = 0; ok && i < n; i++)
        if (text[i] == '<')
            fputs("\\u003c", out);
        else
            fputc(text[i], out);
    fputs("</script>\n", out);
    free(text);
    return ok;
}

void weir_page_block(FILE *out, weir_base64 *b, const char *attributes)
{
    fprintf(out, "<script type=\"text/plain\" %s>", attributes);
    *b = (weir_base64){.out = out};
}

void weir_page_part(weir_base64 *b)
{
    weir_base64_end(b);
    fputc(' ', b->out);
}

void weir_page_block_end(weir_base64 *b)
{
    weir_base64_end(b);
    fputs("</script>\n", b->out);
}

bool weir_page_tokens_init(weir_page_tokens *t, int64_t V)
{
    *t = (weir_page_tokens){.V = V};
    t->index = calloc((size_t)V + 1, sizeof *t->index);
    t->id = malloc(((size_t)V + 1) * sizeof *t->id);
    return t->index && t->id;
}

int64_t weir_page_token(weir_page_tokens *t, int32_t id)
{
    if (id < 0 || id >= t->V)
        return 0;
    if (t->index[id] == 0) {
        t->id[t->n++] = id;
        t->index[id] = (int32_t)t->n;
    }
    return t->index[id];
}

void weir_page_tokens_put(const weir_page_tokens *t, const weir_tokenizer *tok, FILE *out)
{
    weir_base64 b;
    weir_page_block(out, &b, "id=\"tokens\"");
    weir_base64_count(&b, t->n);
    for (int64_t i = 0; i < t->n; i++) {
        bool known = tok && t->id[i] < weir_tokenizer_size(tok);
        weir_str bytes = known ? weir_tokenizer_bytes(tok, t->id[i]) : (weir_str){0};
        bool special = known && weir_tokenizer_is_special(tok, t->id[i]);
        weir_base64_count(&b, t->id[i]);
        weir_base64_count(&b, 2 * (int64_t)bytes.n + special);
        weir_base64_put(&b, bytes.p, bytes.n);
    }
    weir_page_block_end(&b);
}

void weir_page_tokens_free(weir_page_tokens *t)
{
    free(t->index);
    free(t->id);
    *t = (weir_page_tokens){0};
}
