/* fuzz/dump_edit.h: damaged dumps. An input chooses a small sound dump, then edits it (h5_edit.h).
 *
 *     input: 1 byte base, then steps
 */
#ifndef FUZZ_DUMP_EDIT_H
#define FUZZ_DUMP_EDIT_H

#include "../unit/record_fixture.h"
#include "h5_edit.h"

enum { EDIT_BASES = 4 };

/* --- sound dumps */

static const weir_point edit_point[] = {
    {"hook_embed", WEIR_SITE_EMBED, -1, 2, 3, 1, 3, "T C", false, false, false},
    {"blocks.0.attn.hook_q", WEIR_SITE_Q, 0, 3, 6, 2, 3, "T H D", false, false, false},
    {"blocks.0.attn.hook_pattern", WEIR_SITE_PATTERN, 0, 3, 2 * 8, 2, 8, "T H S", true, false, false},
    {"blocks.1.mlp.hook_post", WEIR_SITE_MLP_POST, 1, 2, 5, 1, 5, "T F", false, false, false},
    {"ln_final.hook_out", WEIR_SITE_LNF_OUT, -1, 2, 70, 1, 70, "T C", false,
     false, false}, /* only in base 1: more than a tile */
};
enum { EDIT_POINTS = sizeof edit_point / sizeof *edit_point, EDIT_CTX = 8, EDIT_UNITS = 3 };

/* A sequence of 8 tokens is a document. */
static inline void edit_document(weir_dump *d, int64_t number, int n_points)
{
    static float x[EDIT_CTX * 70];
    fx_pass pass;
    const weir_field fields[] = {{.name = {"n", 1}, .type = WEIR_FIELD_INT, .i = number},
                                 {.name = {"f", 1}, .type = WEIR_FIELD_FLOAT, .f = 0.5},
                                 {.name = {"b", 1}, .type = WEIR_FIELD_BOOL, .i = 1},
                                 {.name = {"s/t", 3}, .type = WEIR_FIELD_STRING, .str = {"text", 4}}};
    const weir_doc doc = {.fields = fields, .n_fields = 4};
    fx_pass_make(&pass, number * EDIT_CTX, EDIT_CTX, number, 0);
    edit_ok(weir_dump_doc(d, &doc, "a.jsonl", NULL));
    edit_ok(fx_tokens(d, &pass, number, NULL));
    for (int i = 0; i < n_points; i++) {
        const weir_point *p = &edit_point[i];
        for (int64_t k = 0; k < EDIT_CTX * p->width; k++)
            x[k] = fx_value(i, number, k);
        const weir_value v = {p, x, p->width, p->heads, p->size, &pass.rows};
        edit_ok(weir_dump_value(d, &v, NULL));
    }
    fx_pass_free(&pass);
}

/* 0: complete, two documents; 1: more rows than a chunk has, selected units; 2: unfinished; 3: as 0, deflated (under a
 * fuzzer that takes most of the time, and fuzz_deflate.c is there for it). */
static inline edit_base edit_make(int which)
{
    static const int64_t units[EDIT_UNITS] = {1, 2, 4};
    const weir_dump_header h = fx_header();
    const int n_points = which == 1 ? EDIT_POINTS : EDIT_POINTS - 1;
    const char *path = parts_path("base.h5");
    weir_dump *d;
    weir_dump_options o;
    weir_dump_options_init(&o);
    o.threads = 1;
    o.force = true;
    o.ctx = EDIT_CTX;
    o.logprob = which != 1;
    o.compress = which == 3;
    edit_ok(weir_dump_new(&d, path, &h, &o, NULL));
    for (int i = 0; i < n_points; i++) {
        bool some = which == 1 && edit_point[i].site == WEIR_SITE_MLP_POST;
        edit_ok(weir_dump_add_point(d, &edit_point[i], some ? units : NULL, some ? EDIT_UNITS : -1, NULL));
    }
    for (int64_t i = 0; i < (which == 1 ? 1040 / EDIT_CTX : 2); i++)
        edit_document(d, i, n_points);
    if (which == 2)
        weir_dump_abort(d, true);
    else
        edit_ok(weir_dump_commit(d, NULL, NULL));
    path = parts_path(which == 2 ? "base.h5.part" : "base.h5");
    edit_base b = edit_read(path);
    unlink(path);
    return b;
}

static inline const edit_base *edit_base_of(int which)
{
    static edit_base base[EDIT_BASES];
    if (!base[which].p)
        base[which] = edit_make(which);
    return &base[which];
}

/* --- what an edit can be about */

static const char *const edit_object[] = {"/tokens/id",
                                          "/activations/hook_embed",
                                          "/activations/blocks.0.attn.hook_q",
                                          "/activations/blocks.0.attn.hook_pattern",
                                          "/activations/blocks.1.mlp.hook_post",
                                          "/activations/ln_final.hook_out",
                                          "/tokens/doc",
                                          "/tokens/pos",
                                          "/tokens/ctx_pos",
                                          "/tokens/byte_off",
                                          "/tokens/byte_len",
                                          "/tokens/flags",
                                          "/tokens/logprob",
                                          "/docs/start",
                                          "/docs/count",
                                          "/docs/byte_off",
                                          "/docs/byte_len",
                                          "/docs/source",
                                          "/docs/fields/n",
                                          "/docs/fields/f",
                                          "/docs/fields/b",
                                          "/docs/fields/s%2Ft/bytes",
                                          "/docs/fields/s%2Ft/offsets",
                                          "/vocab/bytes",
                                          "/vocab/offsets",
                                          "/sources/bytes",
                                          "/sources/offsets",
                                          "/progress/group",
                                          "/progress/rows_complete",
                                          "/row",
                                          "/unit_3",
                                          "/",
                                          "/tokens",
                                          "/docs",
                                          "/docs/fields",
                                          "/docs/fields/s%2Ft",
                                          "/vocab",
                                          "/sources",
                                          "/progress",
                                          "/activations",
                                          "/activations/new",
                                          "/docs/fields/new"};
static const char *const edit_attribute[] = {
    "format", "format_version", "complete", "heads", "head_size",      "layer", "letters", "units", "site",
    "ctx",    "interventions",  "shards",   "dtype", "DIMENSION_LIST", "CLASS", "new"};
enum {
    EDIT_OBJECTS = sizeof edit_object / sizeof *edit_object,
    EDIT_ATTRIBUTES = sizeof edit_attribute / sizeof *edit_attribute
};

/* Writes the edited dump to the file NAME of parts_path. */
static inline void edit_dump(edit_input *in, const char *name)
{
    static const edit_names names = {edit_object, edit_attribute, EDIT_OBJECTS, EDIT_ATTRIBUTES};
    const edit_base *b = edit_base_of((int)(edit_number(in, 1) % EDIT_BASES));
    edit_file(in, name, b, &names);
}

#endif
