#include "report.h"

#include <sys/resource.h>

#include "progress.h"
#include "say.h"

static int64_t peak_memory(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (int64_t)u.ru_maxrss * 1024 : 0;
}

static const char *megabytes(int64_t bytes, char buf[32])
{
    snprintf(buf, 32, "%.1f MB", (double)bytes / 1e6);
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

/* What was not kept of the input. Silence here would be a lie. */
static void say_losses(const weir_report *r, const weir_cli *cli)
{
    if (r->counts.lost_bytes)
        weir_cli_note(cli, "%lld bytes in %lld documents are lost: this vocabulary cannot hold them",
                      (long long)r->counts.lost_bytes, (long long)r->counts.lost_docs);
    if (weir_docs_skipped(r->docs))
        weir_cli_note(cli, "%lld empty documents were skipped", (long long)weir_docs_skipped(r->docs));
    if (r->summary.dropped_fields)
        weir_cli_note(cli, "%lld fields were dropped: new, or of another type than in the first document",
                      (long long)r->summary.dropped_fields);
}

void weir_report_say(const weir_report *r, const weir_cli *cli)
{
    char a[32], b[32], c[32], d[32];
    weir_model_memory m = weir_model_memory_of(r->model);
    say_losses(r, cli);
    weir_cli_note(cli, "%s tokens in %s documents, %s rows in %.2f s: %s tokens/s", weir_commas(r->counts.tokens, a),
                  weir_commas(r->counts.docs, b), weir_commas(r->rows, c), r->seconds,
                  weir_commas((int64_t)rate(r), d));
    if (r->dump)
        weir_cli_note(cli, "%s: %lld hooks, %s as %s (%.2fx)", r->dump, (long long)r->summary.datasets,
                      megabytes(r->summary.raw_bytes, a), megabytes(r->summary.file_bytes, b), ratio(r));
    weir_cli_note(cli, "peak memory %s: model file %s (mapped), packed panels %s, arena %s",
                  megabytes(peak_memory(), a), megabytes(m.mapped, b), megabytes(m.panels, c),
                  megabytes(weir_run_arena_bytes(r->run), d));
}

static void write_int(weir_jsonw *w, const char *key, int64_t v)
{
    weir_jsonw_key(w, key);
    weir_jsonw_int(w, v);
}

static void write_double(weir_jsonw *w, const char *key, double v)
{
    weir_jsonw_key(w, key);
    weir_jsonw_double(w, v);
}

static void write_str(weir_jsonw *w, const char *key, const char *v)
{
    weir_jsonw_key(w, key);
    v ? weir_jsonw_cstr(w, v) : weir_jsonw_null(w);
}

static void write_memory(const weir_report *r, weir_jsonw *w)
{
    weir_model_memory m = weir_model_memory_of(r->model);
    weir_jsonw_key(w, "memory");
    weir_jsonw_object(w);
    write_int(w, "peak", peak_memory());
    write_int(w, "mapped", m.mapped);
    write_int(w, "panels", m.panels);
    write_int(w, "model_other", m.other);
    write_int(w, "arena", weir_run_arena_bytes(r->run));
    weir_jsonw_end(w);
}

void weir_report_json(const weir_report *r, FILE *out)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    write_str(&w, "dump", r->dump);
    write_str(&w, "model", weir_model_info_of(r->model)->name);
    write_str(&w, "kernel", weir_run_kernel(r->run));
    write_int(&w, "threads", weir_run_threads(r->run));
    write_int(&w, "tokens", r->counts.tokens);
    write_int(&w, "documents", r->counts.docs);
    write_int(&w, "skipped_documents", weir_docs_skipped(r->docs));
    write_int(&w, "lost_bytes", r->counts.lost_bytes);
    write_int(&w, "dropped_fields", r->summary.dropped_fields);
    write_int(&w, "rows", r->rows);
    write_int(&w, "rows_run", r->rows_run);
    write_int(&w, "hooks", r->summary.datasets);
    write_int(&w, "raw_bytes", r->summary.raw_bytes);
    write_int(&w, "file_bytes", r->summary.file_bytes);
    write_double(&w, "ratio", ratio(r));
    write_double(&w, "seconds", r->seconds);
    write_double(&w, "tokens_per_second", rate(r));
    write_memory(r, &w);
    if (r->hook_output)
        write_str(&w, "hook_output", r->hook_output);
    weir_jsonw_end(&w);
    fputc('\n', out);
}
