/* pipeline.c: which steps of a tokenizer.json weir does, and how they map to its own. */
#include "pipeline.h"

#include <stdio.h>
#include <string.h>

#include "component.h"

static const weir_str META = {"\xe2\x96\x81", 3}, SPACE = {" ", 1}, NOTHING = {"", 0};

/* How many times as long a step can make a text. */
static size_t growth_of(const weir_tok_op *op)
{
    switch (op->kind) {
    case WEIR_TOK_NFC:
        return 3;
    case WEIR_TOK_REPLACE:
        return op->to.n > op->from.n ? op->to.n / op->from.n + (op->to.n % op->from.n > 0) : 1;
    case WEIR_TOK_PREPEND:
    case WEIR_TOK_PREFIX:
    case WEIR_TOK_PREFIX_FIRST:
        break;
    }
    return op->to.n + 1;
}

weir_status weir_tok_add_op(weir_tok_ops *ops, weir_tok_op_kind kind, weir_str from, weir_str to, weir_err *err)
{
    if (ops->n == WEIR_TOK_MAX_OPS)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "more than %d steps of normalisation", WEIR_TOK_MAX_OPS);
    weir_tok_op op = {kind, from, to};
    size_t most = WEIR_TOK_MAX_GROWTH;
    for (int i = 0; i < ops->n; i++)
        most /= growth_of(&ops->op[i]);
    if (growth_of(&op) > most)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "steps of normalisation that make a text more than %d times as long",
                         WEIR_TOK_MAX_GROWTH);
    ops->op[ops->n++] = op;
    return WEIR_OK;
}

weir_status weir_tok_add_stage(weir_tokenizer *t, weir_tok_splitter *split, const char *name, weir_err *err)
{
    size_t used = strlen(t->pattern);
    if (t->n_stages == WEIR_TOK_MAX_STAGES)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "more than %d pre-tokenizers", WEIR_TOK_MAX_STAGES);
    t->stage[t->n_stages++] = split;
    snprintf(t->pattern + used, sizeof t->pattern - used, "%s%s", used ? "+" : "", name);
    return WEIR_OK;
}

void weir_tok_name_pattern(weir_tokenizer *t)
{
    if (strcmp(t->pattern, "digits+gpt2") == 0)
        strcpy(t->pattern, "smollm");
    else if (!t->pattern[0])
        strcpy(t->pattern, "none");
}

/* --- normalizer */

static weir_status normalizer_step(weir_tokenizer *t, const weir_tok_source *src, weir_str raw, void *ctx,
                                   weir_err *err)
{
    weir_tok_component c;
    WEIR_TRY(weir_tok_component_read(t, src, raw, &c, err));
    if (!c.type.p)
        return WEIR_OK;
    if (weir_str_eq(c.type, "Sequence"))
        return weir_tok_component_parts(t, src, &c, normalizer_step, ctx, err);
    if (weir_str_eq(c.type, "NFC"))
        return weir_tok_add_op(&t->normalizer, WEIR_TOK_NFC, NOTHING, NOTHING, err);
    if (weir_str_eq(c.type, "Prepend") && c.text.p)
        return weir_tok_add_op(&t->normalizer, WEIR_TOK_PREPEND, NOTHING, c.text, err);
    if (weir_str_eq(c.type, "Replace")) {
        if (!c.pattern.n || !c.text.p)
            return weir_tok_refuse(src, &c, "normalizer", "with a pattern that is not a plain string is not supported",
                                   err);
        return weir_tok_add_op(&t->normalizer, WEIR_TOK_REPLACE, c.pattern, c.text, err);
    }
    return weir_tok_refuse(src, &c, "normalizer", "is not supported (known: NFC, Prepend, Replace, Sequence)", err);
}

weir_status weir_tok_read_normalizer(weir_tokenizer *t, const weir_tok_source *src, weir_str raw, weir_err *err)
{
    return raw.p ? normalizer_step(t, src, raw, NULL, err) : WEIR_OK;
}

/* --- pre_tokenizer */

static weir_status byte_level(weir_tokenizer *t, const weir_tok_source *src, const weir_tok_component *c, weir_err *err)
{
    if (t->kind == WEIR_TOK_BYTES)
        return weir_tok_refuse(src, c, "pre_tokenizer", "stands there twice", err);
    t->kind = WEIR_TOK_BYTES;
    if (c->add_prefix_space != 0) {
        if (t->n_stages)
            return weir_tok_refuse(src, c, "pre_tokenizer", "with add_prefix_space behind another one is not supported",
                                   err);
        WEIR_TRY(weir_tok_add_op(&t->prefix, WEIR_TOK_PREFIX, NOTHING, SPACE, err));
    }
    return c->use_regex != 0 ? weir_tok_add_stage(t, weir_split_gpt2, "gpt2", err) : WEIR_OK;
}

static weir_status metaspace(weir_tokenizer *t, const weir_tok_source *src, const weir_tok_component *c, weir_err *err)
{
    if (t->n_stages || t->prefix.n || t->kind == WEIR_TOK_BYTES)
        return weir_tok_refuse(src, c, "pre_tokenizer", "beside another one is not supported", err);
    if (c->text.n != META.n || memcmp(c->text.p, META.p, META.n) != 0)
        return weir_tok_refuse(src, c, "pre_tokenizer", "with a replacement other than U+2581 is not supported", err);
    WEIR_TRY(weir_tok_add_op(&t->prefix, WEIR_TOK_REPLACE, SPACE, META, err));
    bool never = c->scheme.p ? weir_str_eq(c->scheme, "never") : c->add_prefix_space == 0;
    if (!never)
        WEIR_TRY(weir_tok_add_op(&t->prefix, weir_str_eq(c->scheme, "first") ? WEIR_TOK_PREFIX_FIRST : WEIR_TOK_PREFIX,
                                 NOTHING, META, err));
    return c->split != 0 ? weir_tok_add_stage(t, weir_split_at_meta, "metaspace", err) : WEIR_OK;
}

/* Whether the normaliser leaves no space, so that splitting at spaces does nothing (Gemma's tokenizer.json does that).
 */
static bool spaces_are_gone(const weir_tokenizer *t)
{
    for (int i = 0; i < t->normalizer.n; i++)
        if (t->normalizer.op[i].kind == WEIR_TOK_REPLACE && weir_str_eq(t->normalizer.op[i].from, " ") &&
            !memchr(t->normalizer.op[i].to.p, ' ', t->normalizer.op[i].to.n))
            return true;
    return false;
}

static weir_status split_by(weir_tokenizer *t, const weir_tok_source *src, const weir_tok_component *c, weir_err *err)
{
    if (c->pattern.p && weir_str_eq(c->pattern, " ") && spaces_are_gone(t))
        return WEIR_OK;
    /* The known patterns match every character, so that these two keep the same pieces. */
    bool isolated = weir_str_eq(c->behavior, "Isolated") && c->invert != 1;
    bool removed = weir_str_eq(c->behavior, "Removed") && c->invert == 1;
    const weir_tok_pattern *p = c->regex.p && (isolated || removed) ? weir_tok_pattern_of_regex(c->regex) : NULL;
    if (p)
        return weir_tok_add_stage(t, p->split, p->name, err);
    weir_str shown = c->regex.p ? c->regex : c->pattern.p ? c->pattern : NOTHING;
    char why[400];
    snprintf(why, sizeof why, "with behavior %.*s and this pattern is not supported: %.*s",
             (int)(c->behavior.n < 40 ? c->behavior.n : 40), c->behavior.p ? c->behavior.p : "",
             (int)(shown.n < 250 ? shown.n : 250), shown.p);
    return weir_tok_refuse(src, c, "pre_tokenizer", why, err);
}

static weir_status pre_tokenizer_step(weir_tokenizer *t, const weir_tok_source *src, weir_str raw, void *ctx,
                                      weir_err *err)
{
    weir_tok_component c;
    WEIR_TRY(weir_tok_component_read(t, src, raw, &c, err));
    if (!c.type.p)
        return WEIR_OK;
    if (weir_str_eq(c.type, "Sequence"))
        return weir_tok_component_parts(t, src, &c, pre_tokenizer_step, ctx, err);
    if (t->kind == WEIR_TOK_BYTES)
        return weir_tok_refuse(src, &c, "pre_tokenizer", "behind ByteLevel is not supported", err);
    if (weir_str_eq(c.type, "ByteLevel"))
        return byte_level(t, src, &c, err);
    if (weir_str_eq(c.type, "Metaspace"))
        return metaspace(t, src, &c, err);
    if (t->prefix.n)
        return weir_tok_refuse(src, &c, "pre_tokenizer", "behind Metaspace is not supported", err);
    if (weir_str_eq(c.type, "Split"))
        return split_by(t, src, &c, err);
    if (weir_str_eq(c.type, "Digits"))
        return c.individual_digits == 1 ? weir_tok_add_stage(t, weir_split_each_digit, "digits", err)
                                        : weir_tok_add_stage(t, weir_split_digit_runs, "digit-runs", err);
    return weir_tok_refuse(src, &c, "pre_tokenizer",
                           "is not supported (known: ByteLevel, Metaspace, Split, Digits, Sequence)", err);
}

weir_status weir_tok_read_pre_tokenizer(weir_tokenizer *t, const weir_tok_source *src, weir_str raw, weir_err *err)
{
    t->kind = WEIR_TOK_CHARS;
    if (raw.p)
        WEIR_TRY(pre_tokenizer_step(t, src, raw, NULL, err));
    weir_tok_name_pattern(t);
    return WEIR_OK;
}

/* --- decoder */

static weir_status decoder_step(weir_tokenizer *t, const weir_tok_source *src, weir_str raw, void *ctx, weir_err *err)
{
    static const char *const plain[] = {"ByteLevel", "ByteFallback", "Fuse"};
    weir_tok_component c;
    WEIR_TRY(weir_tok_component_read(t, src, raw, &c, err));
    if (!c.type.p)
        return WEIR_OK;
    if (weir_str_eq(c.type, "Sequence"))
        return weir_tok_component_parts(t, src, &c, decoder_step, ctx, err);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (weir_str_eq(c.type, plain[i]))
            return WEIR_OK;
    if (weir_str_eq(c.type, "Replace") && c.pattern.p && weir_str_eq(c.pattern, META.p) && weir_str_eq(c.text, " "))
        return WEIR_OK;
    if (weir_str_eq(c.type, "Strip") && weir_str_eq(c.text, " ") && c.start >= 0 && c.start <= 1 && c.stop == 0) {
        t->strip_space = t->strip_space || c.start == 1;
        return WEIR_OK;
    }
    if (weir_str_eq(c.type, "Metaspace")) {
        t->strip_meta = c.scheme.p ? !weir_str_eq(c.scheme, "never") : c.add_prefix_space != 0;
        return WEIR_OK;
    }
    return weir_tok_refuse(src, &c, "decoder", "with these settings is not supported", err);
}

weir_status weir_tok_read_decoder(weir_tokenizer *t, const weir_tok_source *src, weir_str raw, weir_err *err)
{
    return raw.p ? decoder_step(t, src, raw, NULL, err) : WEIR_OK;
}

/* --- post_processor: no special tokens are ever added here; only the policy is wanted */

/* The special token at the head of [{"SpecialToken": {"id": ...}}, {"Sequence": ...}]. */
static weir_status template_head(weir_tokenizer *t, const weir_tok_source *src, weir_str single, weir_str *first,
                                 weir_err *err)
{
    weir_json j;
    weir_str key;
    bool at_head = true;
    weir_tok_json_at(&j, src, single, err);
    weir_json_array(&j);
    while (weir_json_item(&j)) {
        weir_json_object(&j);
        while (weir_json_key(&j, &key)) {
            if (!at_head || !weir_str_eq(key, "SpecialToken")) {
                weir_json_skip(&j);
                continue;
            }
            weir_json_object(&j);
            while (weir_json_key(&j, &key)) {
                if (weir_str_eq(key, "id"))
                    *first = weir_tok_json_string(t, &j);
                else
                    weir_json_skip(&j);
            }
        }
        at_head = false;
    }
    return weir_json_done(&j);
}

static weir_status post_step(weir_tokenizer *t, const weir_tok_source *src, weir_str raw, void *ctx, weir_err *err)
{
    weir_tok_component c;
    WEIR_TRY(weir_tok_component_read(t, src, raw, &c, err));
    if (!c.type.p)
        return WEIR_OK;
    if (weir_str_eq(c.type, "Sequence"))
        return weir_tok_component_parts(t, src, &c, post_step, ctx, err);
    if (weir_str_eq(c.type, "TemplateProcessing") && c.single.p)
        return template_head(t, src, c.single, ctx, err);
    return WEIR_OK;
}

weir_status weir_tok_read_post_processor(weir_tokenizer *t, const weir_tok_source *src, weir_str raw, weir_str *first,
                                         weir_err *err)
{
    return raw.p ? post_step(t, src, raw, first, err) : WEIR_OK;
}
