#include "token.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ramp.h"

void weir_lens_token(weir_text *t, const weir_tokenizer *tok, int32_t id)
{
    weir_text_token(t, tok ? weir_tokenizer_bytes(tok, id) : (weir_str){NULL, 0}, id);
}

/* --- short numbers */

/* ".123"; small ones as "4e-5", and as 0 where that has no room. */
static void short_prob(char buf[16], double x)
{
    char digits[16];
    if (x >= 0.9995) {
        snprintf(buf, 16, "1.00");
    } else if (x >= 0.00095) {
        snprintf(buf, 16, ".%03d", (int)lround(1000 * x));
    } else if (x >= 0.95e-9) {
        snprintf(digits, sizeof digits, "%.0e", x); /* "4e-05" */
        snprintf(buf, 16, "%ce-%c", digits[0], digits[4]);
    } else {
        snprintf(buf, 16, "0");
    }
}

/* Two decimals, fewer for larger numbers. */
static void short_nats(char buf[16], double x)
{
    snprintf(buf, 16, x < 9.995 ? "%.2f" : x < 99.95 ? "%.1f" : x < 9999.5 ? "%.0f" : "%.0e", x);
}

static void short_logit(char buf[16], double x)
{
    double size = fabs(x);
    snprintf(buf, 16, size < 99.95 ? "%.1f" : size < 9999.5 ? "%.0f" : "%.0e", x);
}

static void short_rank(char buf[16], double x)
{
    if (x < 99999.5)
        snprintf(buf, 16, "%.0f", x);
    else
        snprintf(buf, 16, "%.0fk", x / 1000);
}

const char *weir_lens_short(char buf[16], weir_lens_stat stat, float x)
{
    if (isnan(x) || (stat == WEIR_STAT_RANK && x <= 0))
        snprintf(buf, 16, "-");
    else if (stat == WEIR_STAT_PROB)
        short_prob(buf, (double)x);
    else if (stat == WEIR_STAT_RANK)
        short_rank(buf, (double)x);
    else if (stat == WEIR_STAT_LOGIT || stat == WEIR_STAT_CONTRAST)
        short_logit(buf, (double)x);
    else
        short_nats(buf, (double)x);
    return buf;
}

int weir_lens_short_columns(weir_lens_stat stat, int64_t V)
{
    if (stat == WEIR_STAT_LOGIT || stat == WEIR_STAT_CONTRAST)
        return 5;
    return stat == WEIR_STAT_RANK && V >= 10000 ? 5 : 4;
}

/* --- words */

/* Which token it is about. */
static void put_target(FILE *f, const weir_lens_about *a, const char *without)
{
    if (!a->target)
        fprintf(f, " of %s", without);
    else if (strcmp(a->target, "next") == 0)
        fputs(" of the token that follows", f);
    else if (strcmp(a->target, "final") == 0)
        fputs(" of the final row's likeliest token", f);
    else
        fprintf(f, " of '%s'", a->target);
}

char *weir_lens_shown_text(const weir_lens_about *a)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    fputs(a->shown == WEIR_STAT_RANK ? "place by probability, from 1," : weir_lens_stat_long(a->shown), f);
    if (a->shown == WEIR_STAT_PROB || a->shown == WEIR_STAT_LOGIT)
        put_target(f, a, "each row's own likeliest token");
    else if (a->shown == WEIR_STAT_RANK)
        put_target(f, a, "the final row's likeliest token");
    else if (a->shown == WEIR_STAT_CONTRAST && a->contrast[0])
        fprintf(f, ": '%s' minus '%s'", a->contrast[0], a->contrast[1]);
    bool bad = ferror(f) != 0;
    if (fclose(f) == 0 && !bad)
        return text;
    free(text);
    return NULL;
}
