#include "points.h"

#include <string.h>

static void print_row(const weir_point *p, int wide, FILE *out)
{
    char shape[64];
    if (p->keyed) /* one column a key, whose number only a run knows: S */
        snprintf(shape, sizeof shape, "[T, %lld, S]", (long long)p->heads);
    else if (p->rank == 3)
        snprintf(shape, sizeof shape, "[T, %lld, %lld]", (long long)p->heads, (long long)p->size);
    else
        snprintf(shape, sizeof shape, "[T, %lld]", (long long)p->width);
    fprintf(out, "%-*s  %-6s  %s%s\n", wide, p->name, p->letters, shape, p->read_only ? "  read-only" : "");
}

static void write_point(weir_jsonw *w, const weir_point *p)
{
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "name", p->name);
    weir_jsonw_key(w, "layer"); /* null: outside the blocks */
    p->layer < 0 ? weir_jsonw_null(w) : weir_jsonw_int(w, p->layer);
    weir_jsonw_key_cstr(w, "letters", p->letters);
    weir_jsonw_key(w, "shape"); /* null: as many as the run has */
    weir_jsonw_array(w);
    weir_jsonw_null(w);
    if (p->rank == 3)
        weir_jsonw_int(w, p->heads);
    p->keyed ? weir_jsonw_null(w) : weir_jsonw_int(w, p->size);
    weir_jsonw_end(w);
    weir_jsonw_key_bool(w, "read_only", p->read_only);
    weir_jsonw_end(w);
}

void weir_points_print(const weir_model *m, const weir_selector *sel, bool json, FILE *out)
{
    const weir_point *p;
    int64_t n = weir_model_points_all(m, &p);
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    if (json) {
        weir_jsonw_object(&w);
        weir_jsonw_key(&w, "hooks");
        weir_jsonw_array(&w);
    }
    int wide = 0;
    for (int64_t i = 0; i < n; i++)
        if (weir_selector_matches(sel, &p[i]) && (int)strlen(p[i].name) > wide)
            wide = (int)strlen(p[i].name);
    for (int64_t i = 0; i < n; i++)
        if (weir_selector_matches(sel, &p[i]))
            json ? write_point(&w, &p[i]) : print_row(&p[i], wide, out);
    if (json) {
        weir_jsonw_end(&w);
        weir_jsonw_end(&w);
        fputc('\n', out);
    }
}
