#include <stdarg.h>
#include <string.h>

#include <weir/base.h>

/* Ends a text that did not fit with "...", without leaving half of a UTF-8 sequence before it. */
static void mark_cut(char *buf, size_t size)
{
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)buf[end] & 0xc0) == 0x80)
        end--;
    memcpy(buf + end, "...", 4);
}

static void copy_field(char *dst, size_t size, const char *src)
{
    int n = snprintf(dst, size, "%s", src);
    if (n >= 0 && (size_t)n >= size)
        mark_cut(dst, size);
    weir_make_printable(dst);
}

weir_status weir_fail(weir_err *err, weir_status code, const char *fmt, ...)
{
    if (!err || err->code != WEIR_OK)
        return code;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n >= sizeof err->msg)
        mark_cut(err->msg, sizeof err->msg);
    weir_make_printable(err->msg);
    err->code = code;
    err->offset = -1;
    err->file[0] = err->tensor[0] = '\0';
    return code;
}

weir_status weir_err_where(weir_err *err, const char *file, const char *tensor, int64_t offset)
{
    if (!err)
        return WEIR_E_FORMAT;
    if (err->code == WEIR_OK)
        return WEIR_OK;
    if (err->file[0] && file && strcmp(err->file, file) != 0)
        return err->code; /* the error happened inside another file: its place is not ours */
    if (file && !err->file[0])
        copy_field(err->file, sizeof err->file, file);
    if (tensor && !err->tensor[0])
        copy_field(err->tensor, sizeof err->tensor, tensor);
    if (err->offset < 0)
        err->offset = offset;
    return err->code;
}

const char *weir_err_line(const weir_err *err, char *buf, size_t n)
{
    if (!n)
        return buf;
    char place[32] = "";
    if (err->offset >= 0)
        snprintf(place, sizeof place, "at byte %lld", (long long)err->offset);
    bool tensor = err->tensor[0] != '\0', at = place[0] != '\0';
    snprintf(buf, n, "%s%s%s%s%s%s%s%s", err->file, err->file[0] ? ": " : "", tensor ? "tensor " : "", err->tensor,
             tensor && at ? " " : "", place, tensor || at ? ": " : "", err->msg);
    return buf;
}
