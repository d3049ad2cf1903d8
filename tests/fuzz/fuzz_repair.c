/* Repairing what a kill left. An input's first byte chooses:
 *   even: a dump that is edited (dump_edit.h) is repaired;
 *   odd:  a file as a kill leaves it: 3 bytes say where it ends, pairs of bytes are put into its superblock.
 * A file that was repaired is repaired already: doing it again changes nothing.
 */
#include <weir/record.h>

#define FUZZ_COST 20
#define EDIT_SIZE_MOST (1 << 20)
#include "dump_edit.h"

enum { SUPERBLOCK = 48, SLACK = 70000 };

static weir_status fill(weir_dump *d)
{
    for (int i = 0; i < EDIT_POINTS - 1; i++)
        edit_ok(weir_dump_add_point(d, &edit_point[i], NULL, -1, NULL));
    for (int64_t i = 0; i < 1040 / EDIT_CTX; i++) {
        edit_document(d, i, EDIT_POINTS - 1);
        edit_ok(weir_dump_flush(d, NULL));
    }
    return WEIR_OK;
}

/* The bytes of a dump that is being written, after a flush: what is there when the process dies. */
static const edit_base *killed(void)
{
    static edit_base b;
    if (b.p)
        return &b;
    const weir_dump_header h = fx_header();
    weir_dump *d;
    weir_dump_options o;
    weir_dump_options_init(&o);
    o.threads = 1;
    o.force = true;
    o.ctx = EDIT_CTX;
    edit_ok(weir_dump_new(&d, parts_path("kill.h5"), &h, &o, NULL));
    edit_ok(fill(d));
    b = edit_read(parts_path("kill.h5.part"));
    weir_dump_abort(d, false);
    return &b;
}

static void kill_it(edit_input *in, const char *name)
{
    const edit_base *b = killed();
    size_t n = b->n + SLACK - edit_number(in, 3) % (b->n + SLACK);
    uint8_t *p = calloc(n + b->n, 1);
    if (!p)
        abort();
    memcpy(p, b->p, b->n);
    while (in->n >= 2) {
        size_t at = edit_number(in, 1) % SUPERBLOCK;
        p[at] = (uint8_t)edit_number(in, 1);
    }
    parts_write(name, p, n);
    free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    edit_input in = {data, size};
    weir_dump_report report = {0}, again = {0};
    weir_dump_reader *r;
    weir_err err = {0};
    if (edit_number(&in, 1) % 2)
        kill_it(&in, "dump.h5.part");
    else
        edit_dump(&in, "dump.h5.part");
    promise_error(weir_dump_repair(parts_path("dump.h5.part"), &report, &err), &err);
    if (!err.code) {
        edit_base whole = edit_read(parts_path("dump.h5.part"));
        PROMISE(report.rows >= 0 && report.rows <= report.most && report.docs >= 0);
        promise_error(weir_dump_repair(parts_path("dump.h5.part"), &again, &err), &err);
        PROMISE(!err.code && again.cut == 0 && !again.open && again.rows == report.rows);
        edit_base same = edit_read(parts_path("dump.h5.part"));
        PROMISE(whole.n == same.n && !memcmp(whole.p, same.p, same.n));
        free(whole.p);
        free(same.p);
    }
    err = (weir_err){0};
    promise_error(weir_dump_open(&r, parts_path("dump.h5.part"), &err), &err);
    weir_dump_close(r);
    unlink(parts_path("dump.h5.part"));
    return 0;
}
