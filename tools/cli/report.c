#include "report.h"

#include <string.h>
#include <sys/resource.h>

#include "progress.h"
#include "say.h"

static int64_t peak_memory(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (int64_t)u.ru_maxrss * 1024 : 0;
}

static const char *size_text(int64_t bytes, char buf[32])
{
    if (bytes < 1000000)
        snprintf(buf, 32, "%.1f kB", (double)bytes / 1e3);
    else if (bytes < 10000000000)
        snprintf(buf, 32, "%.1f MB", (double)bytes / 1e6);
    else
        snprintf(buf, 32, "%.1f GB", (double)bytes / 1e9);
    return buf;
}

/* "1 document", "1,000 documents". */
static const char *count_text(int64_t n, const char *one, char buf[64])
{
    char digits[32];
    snprintf(buf, 64, "%s %s%s", weir_commas(n, digits), one, n == 1 ? "" : "s");
    return buf;
}

static double ratio(const weir_report *r)
{
    return r->summary.file_bytes > 0 ? (double)r->summary.raw_bytes / (double)r->summary.file_bytes : 0;
}

static double rate(const weir_report *r)
{
    return r->seconds > 0 ? (double)r->counts.tokens / r->seconds : 0;
}

static void say_fields(const weir_dump_summary *s, const weir_cli *cli)
{
    char a[64], names[sizeof s->dropped_name + 2 * WEIR_DROPPED_NAMES] = "";
    for (int i = 0; i < WEIR_DROPPED_NAMES && *s->dropped_name[i]; i++) {
        const bool more = i == WEIR_DROPPED_NAMES - 1;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 more ? "..." : s->dropped_name[i]);
    }
    weir_cli_note(cli, "%s not kept (%s): no scalar, new, or of another type than in the first document",
                  count_text(s->dropped_fields, "field", a), names);
}

/* What was not kept of the input. Silence here would be a lie. */
static void say_losses(const weir_report *r, const weir_cli *cli)
{
    char a[64], b[64];
    if (r->counts.lost_bytes)
        weir_cli_note(cli, "%s in %s lost: this vocabulary cannot hold them",
                      count_text(r->counts.lost_bytes, "byte", a), count_text(r->counts.lost_docs, "document", b));
    if (weir_docs_skipped(r->docs))
        weir_cli_note(cli, "%s skipped", count_text(weir_docs_skipped(r->docs), "empty document", a));
    if (r->summary.dropped_fields)
        say_fields(&r->summary, cli);
}

static void say_dump(const weir_report *r, const weir_cli *cli)
{
    char a[32], b[32], hooks[64];
    count_text(r->summary.datasets, "hook", hooks);
    size_text(r->summary.raw_bytes, a);
    size_text(r->summary.file_bytes, b);
    if (r->summary.raw_bytes < 1000000) /* tokens, vocabulary and unfilled tiles outweigh the values: no ratio */
        weir_cli_note(cli, "%s: %s, %s in a file of %s", r->dump, hooks, a, b);
    else
        weir_cli_note(cli, "%s: %s, %s as %s (%.2fx)", r->dump, hooks, a, b, ratio(r));
}

void weir_report_say(const weir_report *r, const weir_cli *cli)
{
    char a[64], b[64], c[64], d[32];
    weir_model_memory m = weir_model_memory_of(r->model);
    say_losses(r, cli);
    weir_cli_note(cli, "%s in %s, %s in %.2f s: %s tokens/s", count_text(r->counts.tokens, "token", a),
                  count_text(r->counts.docs, "document", b), count_text(r->rows, "row", c), r->seconds,
                  weir_commas((int64_t)rate(r), d));
    weir_attach_say(r->attach, cli);
    if (r->dump)
        say_dump(r, cli);
    weir_cli_note(cli, "peak memory %s: model file %s (mapped), packed panels %s, arena %s",
                  size_text(peak_memory(), a), size_text(m.mapped, b), size_text(m.panels, c),
                  size_text(weir_run_arena_bytes(r->run), d));
    if (m.packed_again)
        weir_cli_note(cli, "weights were packed again %s, because --memory has no room for all of them: --order layer "
                           "packs each once",
                      count_text(m.packed_again, "time", a));
}

static void write_memory(const weir_report *r, weir_jsonw *w)
{
    weir_model_memory m = weir_model_memory_of(r->model);
    weir_jsonw_key(w, "memory");
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "peak", peak_memory());
    weir_jsonw_key_int(w, "mapped", m.mapped);
    weir_jsonw_key_int(w, "panels", m.panels);
    weir_jsonw_key_int(w, "model_other", m.other);
    weir_jsonw_key_int(w, "arena", weir_run_arena_bytes(r->run));
    weir_jsonw_key_int(w, "packed_again", m.packed_again);
    weir_jsonw_end(w);
}

void weir_report_json(const weir_report *r, FILE *out)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "dump", r->dump);
    weir_jsonw_key_cstr(&w, "model", weir_model_info_of(r->model)->name);
    weir_jsonw_key_cstr(&w, "kernel", weir_run_kernel(r->run));
    weir_jsonw_key_int(&w, "threads", weir_run_threads(r->run));
    weir_jsonw_key_int(&w, "tokens", r->counts.tokens);
    weir_jsonw_key_int(&w, "documents", r->counts.docs);
    weir_jsonw_key_int(&w, "skipped_documents", weir_docs_skipped(r->docs));
    weir_jsonw_key_int(&w, "lost_bytes", r->counts.lost_bytes);
    weir_jsonw_key_int(&w, "dropped_fields", r->summary.dropped_fields);
    weir_jsonw_key_int(&w, "rows", r->rows);
    weir_jsonw_key_int(&w, "rows_run", r->rows_run);
    weir_jsonw_key_int(&w, "hooks", r->summary.datasets);
    weir_jsonw_key_int(&w, "raw_bytes", r->summary.raw_bytes);
    weir_jsonw_key_int(&w, "file_bytes", r->summary.file_bytes);
    weir_jsonw_key_double(&w, "ratio", ratio(r));
    weir_jsonw_key_double(&w, "seconds", r->seconds);
    weir_jsonw_key_double(&w, "tokens_per_second", rate(r));
    write_memory(r, &w);
    weir_jsonw_key(&w, "interventions");
    weir_attach_write(r->attach, &w);
    if (r->hook_output)
        weir_jsonw_key_cstr(&w, "hook_output", r->hook_output);
    weir_jsonw_end(&w);
    fputc('\n', out);
}
