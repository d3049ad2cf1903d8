/* Charts of pages: well-formed whatever the values and names, at the places where values belong, with gaps where there
 * are none. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "page/chart.h"

#define S(x) ((weir_str){x, sizeof(x) - 1})
#define NASTY "<b a=\"1\">&amp;]]>\x1b[31m\xff\xef\xbf\xbf\xe2\x80\xae"

static char *text;
static size_t text_n;
static FILE *out;

static void begin(void)
{
    out = open_memstream(&text, &text_n);
    assert_non_null(out);
    weir_chart_open(out, 500, 300, "a picture " NASTY);
}

/* The value of an attribute: no quotes inside, and no word for what is no number. */
static const char *after_tag(const char *p)
{
    while (*p && *p != '>') {
        assert_int_not_equal(*p, '<');
        if (*p++ != '"')
            continue;
        const char *end = strchr(p, '"');
        assert_non_null(end);
        for (const char *q = p; q < end; q++) {
            assert_int_not_equal(*q, '<');
            assert_false(end - q >= 3 && (strncmp(q, "nan", 3) == 0 || strncmp(q, "inf", 3) == 0));
        }
        p = end + 1;
    }
    assert_int_equal(*p, '>');
    return p + 1;
}

/* Elements open and close, and text has no control characters and no loose ampersands. */
static void check_form(void)
{
    int depth = 0;
    for (const char *p = text; *p;) {
        assert_false((unsigned char)*p < 32 && *p != '\n');
        assert_int_not_equal((unsigned char)*p, 0xff);
        if (*p == '&') {
            assert_true(strncmp(p, "&lt;", 4) == 0 || strncmp(p, "&gt;", 4) == 0 || strncmp(p, "&amp;", 5) == 0 ||
                        strncmp(p, "&quot;", 6) == 0);
            p++;
        } else if (*p == '<') {
            const bool closes = p[1] == '/';
            p = after_tag(p + 1);
            depth += closes ? -1 : p[-2] != '/';
            assert_true(depth >= 0);
        } else {
            p++;
        }
    }
    assert_int_equal(depth, 0);
}

static void end(void)
{
    weir_svg_end(out);
    assert_int_equal(fclose(out), 0);
    check_form();
}

static int times(const char *what)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

static void drop(void)
{
    free(text);
    text = NULL;
}

static weir_chart chart(void)
{
    return (weir_chart){.out = out, .x = 60, .y = 20, .width = 400, .height = 200, .title = "t"};
}

/* --- axes */

static void test_round_numbers(void **state)
{
    (void)state;
    begin();
    weir_chart c = chart();
    c.across.label = "x";
    c.up.unit = " %";
    c.up.times = 100;
    weir_chart_hold(&c.across, (double[]){3, NAN, 96, INFINITY}, 4);
    weir_chart_hold(&c.up, (double[]){0, 0.93}, 2);
    weir_chart_frame(&c);
    assert_true(c.across.from == 0 && c.across.to == 100);
    assert_true(fabs(c.up.to - 1) < 1e-12);
    assert_true(weir_chart_across(&c, 0) == 60 && weir_chart_across(&c, 100) == 460);
    assert_true(fabs(weir_chart_up(&c, 0) - 220) < 1e-9 && fabs(weir_chart_up(&c, 1) - 20) < 1e-9);
    assert_true(isnan(weir_chart_up(&c, NAN)) && isnan(weir_chart_up(&c, -INFINITY)));
    end();
    assert_non_null(strstr(text, ">20 %</text>"));
    assert_non_null(strstr(text, ">100 %</text>"));
    assert_non_null(strstr(text, ">80</text>"));
    drop();
}

static void test_held_zero_stays(void **state)
{
    (void)state;
    weir_chart_axis a = {0};
    weir_chart_hold_one(&a, 0);
    weir_chart_hold_one(&a, 5);
    assert_true(a.from == 0 && a.to == 5);
}

static void test_log(void **state)
{
    (void)state;
    begin();
    weir_chart c = chart();
    c.up.log = true;
    weir_chart_hold(&c.up, (double[]){0, -4, 0.02, 3000}, 4);
    weir_chart_frame(&c);
    assert_true(fabs(c.up.from - 0.01) < 1e-12 && fabs(c.up.to - 10000) < 1e-6);
    assert_true(fabs(weir_chart_up(&c, 10) - 120) < 1e-6);
    assert_true(isnan(weir_chart_up(&c, 0)));
    end();
    assert_non_null(strstr(text, ">0.01</text>"));
    assert_non_null(strstr(text, ">1000</text>"));
    drop();
}

/* Ranges without an end, without an extent, far from zero: a picture all the same. */
static void test_ranges(void **state)
{
    static const double range[][2] = {{0, 0},         {7, 7},           {-3, -3},       {1e300, 1e300}, {-1e300, 1e300},
                                      {1e-320, 1},    {5e-324, 1e-323}, {1e9, 1e9 + 3}, {NAN, NAN},     {-INFINITY, 1},
                                      {1, 1 + 1e-15}, {1e-300, 1e300},  {0.3, 0.31}};
    (void)state;
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        for (int how = 0; how < 4; how++) {
            begin();
            weir_chart c = chart();
            c.across.log = c.up.log = how & 1;
            c.across.exact = how & 2;
            weir_chart_hold(&c.across, range[i], 2);
            weir_chart_hold(&c.up, range[i], 2);
            weir_chart_frame(&c);
            weir_chart_line(&c, 2, range[i], range[i], &(weir_chart_style){.dots = 2});
            weir_chart_bars(&c, 1, range[i], range[i], &(weir_chart_style){0});
            weir_chart_band(&c, 2, range[i], range[i], range[i], &(weir_chart_style){0});
            end();
            assert_true(c.across.from < c.across.to && c.up.from < c.up.to);
            assert_in_range(times("<text"), 3, 40);
            drop();
        }
    begin();
    weir_chart c = chart();
    weir_chart_hold(&c.up, (double[]){1e9, 1e9 + 3}, 2);
    weir_chart_frame(&c);
    end();
    assert_non_null(strstr(text, ">1000000001</text>"));
    drop();
}

static void test_names_thin_out(void **state)
{
    weir_str name[300];
    (void)state;
    for (int i = 0; i < 300; i++)
        name[i] = S("L10 " NASTY);
    begin();
    weir_chart c = chart();
    c.across.name = name;
    c.across.names = 300;
    weir_chart_frame(&c);
    end();
    assert_true(c.across.to == 299);
    assert_in_range(times("L10 &lt;"), 2, 10);
    drop();
}

/* --- what stands in frames */

static weir_chart framed(void)
{
    weir_chart c = chart();
    c.across = c.up = (weir_chart_axis){.from = 0, .to = 10, .exact = true};
    weir_chart_frame(&c);
    return c;
}

static void test_gaps(void **state)
{
    (void)state;
    begin();
    weir_chart c = framed();
    weir_chart_line(&c, 7, NULL, (double[]){1, 2, NAN, 3, INFINITY, 4, 5}, &(weir_chart_style){.name = "l"});
    end();
    assert_non_null(strstr(text, "d=\"M0 0M60.00 200.00L100.00 180.00M260.00 140.00L300.00 120.00\""));
    assert_non_null(strstr(text, "<title>l, 3: 3</title>")); /* a value alone is a dot */
    assert_int_equal(times("<circle"), 1);
    drop();
    begin();
    c = framed();
    weir_chart_band(&c, 5, NULL, (double[]){1, 1, NAN, 1, 1}, (double[]){2, 2, 2, 2, 2}, &(weir_chart_style){0});
    end();
    assert_int_equal(times("Z"), 2);
    drop();
}

static void test_cut_off(void **state)
{
    (void)state;
    begin();
    weir_chart c = framed();
    weir_chart_line(&c, 3, (double[]){0, 5, 10}, (double[]){5, 15, 5}, &(weir_chart_style){0});
    weir_chart_points(&c, 2, (double[]){5, 5}, (double[]){5, 11}, NULL, false, &(weir_chart_style){0});
    weir_chart_rule(&c, true, 12, &(weir_chart_style){.name = "beyond"});
    weir_chart_rule(&c, false, 5, &(weir_chart_style){.name = "within"});
    end();
    assert_non_null(strstr(text, "d=\"M0 0M60.00 120.00L160.00 20.00M360.00 20.00L460.00 120.00\""));
    assert_int_equal(times("<circle"), 1);
    assert_null(strstr(text, "beyond"));
    assert_non_null(strstr(text, "<title>within</title>"));
    drop();
}

/* A band that leaves the frame keeps its slopes: the corner stands where it crosses the edge. */
static void test_band_cut_off(void **state)
{
    (void)state;
    begin();
    weir_chart c = framed();
    weir_chart_band(&c, 2, (double[]){0, 10}, (double[]){0, 0}, (double[]){0, 40}, &(weir_chart_style){0});
    end();
    assert_non_null(strstr(text, "M60.00 220.00L160.00 20.00L460.00 20.00L460.00 20.00L460.00 220.00L60.00 220.00Z"));
    assert_int_equal(times("<svg"), 1);
    drop();
}

static void test_bars(void **state)
{
    (void)state;
    begin();
    weir_chart c = framed();
    weir_chart_bars(&c, 3, (double[]){0, 0.1 + 0.2, 4, 5}, (double[]){5, NAN, -3}, &(weir_chart_style){0});
    weir_chart_steps(&c, 3, (double[]){0, 1, 4, 5}, (double[]){5, 2, NAN}, &(weir_chart_style){0});
    end();
    assert_non_null(strstr(text, "<title>0 to 0.30000000000000004: 5</title>"));
    assert_null(strstr(text, "0.30000000000000004 to 4"));
    assert_non_null(strstr(text, "y=\"120.00\" width=\"11.50\" height=\"100.00\""));
    assert_non_null(strstr(text, "d=\"M0 0M60.00 120.00H100.00L100.00 180.00H220.00\""));
    drop();
}

static void test_hostile_names(void **state)
{
    const weir_str name[2] = {S(NASTY), S("")};
    const weir_chart_style s[2] = {{.name = NASTY, .area = true}, {.name = NASTY}};
    (void)state;
    begin();
    weir_chart c = chart();
    c.title = NASTY;
    c.across.label = NASTY;
    c.up.label = NASTY;
    c.up.unit = NASTY;
    c.across.name = name;
    c.across.names = 2;
    weir_chart_frame(&c);
    weir_chart_line(&c, 2, NULL, (double[]){0.5, 1}, &(weir_chart_style){.name = NASTY, .dots = 1});
    weir_chart_points(&c, 2, NULL, (double[]){0.5, 1}, name, true, &s[0]);
    assert_true(weir_chart_legend(NULL, 0, 0, 50, s, 2) == 2 * WEIR_CHART_LEGEND);
    assert_true(weir_chart_legend(out, 0, 0, 1000, s, 2) == WEIR_CHART_LEGEND);
    end();
    assert_int_equal(times("<b a"), 0);
    drop();
}

static void test_legend_shows_what_is_drawn(void **state)
{
    const weir_chart_style s[3] = {
        {.name = "line"}, {.name = "area", .area = true}, {.name = "dot", .dots = 4.5, .loose = true}};
    (void)state;
    begin();
    weir_chart_legend(out, 0, 0, 1000, s, 3);
    end();
    assert_int_equal(times("<path"), 1);
    assert_int_equal(times("<rect"), 2); /* one is the ground */
    assert_int_equal(times("<circle"), 1);
    drop();
}

/* --- maps, scales, strips, tables */

static void test_scale(void **state)
{
    (void)state;
    const weir_chart_scale s = weir_chart_scale_of((double[]){NAN, 3, -1, INFINITY}, 4, false);
    assert_true(s.low == -3 && s.most == 3);
    assert_string_equal(weir_chart_scale_colour(&s, 0).text, "rgb(255,255,255)");
    assert_string_equal(weir_chart_scale_colour(&s, 9).text, weir_svg_heat(1).text);
    assert_string_equal(weir_chart_scale_colour(&s, -INFINITY).text, weir_svg_heat(-1).text);
    assert_string_equal(weir_chart_scale_colour(&s, NAN).text, "none");
    const weir_chart_scale l = weir_chart_scale_of((double[]){1, 0, 100, -5}, 4, true);
    assert_true(l.low == 1 && l.most == 100);
    assert_string_equal(weir_chart_scale_colour(&l, 10).text, weir_svg_heat(0.5).text);
    assert_string_equal(weir_chart_scale_colour(&l, 0).text, "none");
    assert_true(weir_chart_scale_of(NULL, 0, false).most == 1);
}

static const char *tip(void *ctx, int64_t row, int64_t column)
{
    static char line[64];
    snprintf(line, sizeof line, "%s%lld<%lld", (const char *)ctx, (long long)row, (long long)column);
    return line;
}

/* Where the cell stands whose tooltip begins so. */
static double cell_y(const char *title)
{
    double y = NAN;
    for (const char *p = text; (p = strstr(p, "<rect x=\"")); p++) {
        const char *t = strstr(p, "<title>");
        if (t && strncmp(t + 7, title, strlen(title)) == 0 && sscanf(p, "<rect x=\"%*f\" y=\"%lf\"", &y) == 1)
            return y;
    }
    fail_msg("no cell %s", title);
    return y;
}

static void test_map(void **state)
{
    char before[] = "at ";
    const double v[6] = {1, NAN, 0.1, INFINITY, 4, 2};
    const weir_str row[2] = {S("low"), S(NASTY)}, column[3] = {S("a"), S(""), S(NASTY)};
    (void)state;
    for (int rising = 0; rising < 2; rising++) {
        begin();
        const weir_chart_map m = {.out = out,
                                  .width = 400,
                                  .rows = 2,
                                  .columns = 3,
                                  .value = v,
                                  .row = row,
                                  .column = column,
                                  .title = NASTY,
                                  .down = NASTY,
                                  .across = NASTY,
                                  .label = NASTY,
                                  .tip = tip,
                                  .ctx = before,
                                  .digits = 2,
                                  .rising = rising};
        assert_true(weir_chart_map_width(&m) <= 400 && weir_chart_map_height(&m) > 36);
        weir_chart_map_draw(&m);
        end();
        assert_non_null(strstr(text, "low, a: 1; at 0&lt;0</title>"));
        assert_non_null(strstr(text, "fill=\"#eceff3\"><title>low, : none; at 0&lt;1</title>"));
        assert_int_equal(times("#eceff3"), 2);
        assert_int_equal(cell_y("low, a:") > cell_y("&lt;b a=&quot;1&quot;&gt;"), rising);
        drop();
    }
    begin(); /* nothing in it, and more than there are pixels */
    const weir_chart_map none = {.out = out, .width = 300};
    weir_chart_map_draw(&none);
    double *many = calloc(3000, sizeof *many);
    const weir_chart_map wide = {.out = out, .width = 300, .rows = 1, .columns = 3000, .value = many};
    weir_chart_map_draw(&wide);
    end();
    assert_in_range(times("<text"), 10, 120);
    free(many);
    drop();
}

static void test_strip(void **state)
{
    const weir_str token[6] = {S("The"), S(" river's \n"), S(NASTY), S(""), S(" \xe6\xb0\xb4"), S(" a\\b")};
    const int32_t id[6] = {1, 2, 3, 77, 5, 6};
    const double v[6] = {0, 1.25, NAN, -INFINITY, -2, 1};
    (void)state;
    begin();
    const weir_chart_strip s = {.out = out,
                                .x = 10,
                                .y = 10,
                                .width = 150,
                                .n = 6,
                                .token = token,
                                .id = id,
                                .value = v,
                                .label = "what",
                                .first = 40};
    const double height = weir_chart_strip_height(&s);
    weir_chart_strip_draw(&s);
    end();
    assert_non_null(strstr(text, "<title>41:  river's \\n  1.25</title>"));
    assert_non_null(strstr(text, ">\xc2\xa0river's\xc2\xa0\\n</text>"));
    assert_non_null(strstr(text, ">&lt;#77&gt;</text>"));
    assert_non_null(strstr(text, ">\xc2\xa0"
                                 "a\\\\b</text>"));
    double lowest = 0;
    for (const char *p = text; (p = strstr(p, "<rect x=\"")); p++) {
        double x, y, wide, high;
        if (sscanf(p, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\" rx", &x, &y, &wide, &high) != 4 ||
            high != 19)
            continue;
        assert_true(x >= 10 && (x == 10 || x + wide <= 160));
        lowest = fmax(lowest, y + high);
    }
    assert_true(lowest > 70 && lowest <= 10 + height);
    drop();
}

static void test_table(void **state)
{
    const char *const head[] = {"token", NASTY, "value", "where"};
    weir_chart_table t;
    (void)state;
    out = open_memstream(&text, &text_n);
    assert_non_null(out);
    weir_chart_table_begin(&t, out, NASTY, head, 4);
    weir_chart_table_token(&t, S(NASTY), 3);
    weir_chart_table_int(&t, -5);
    weir_chart_table_real(&t, 1.0 / 3, 3, &(weir_chart_scale){0, 1, false});
    weir_chart_table_context(&t, S("a<"), S("b"), S(NASTY));
    weir_chart_table_token(&t, (weir_str){0}, 9);
    weir_chart_table_real(&t, NAN, 3, NULL);
    weir_chart_table_text(&t, "01234567890123456789012345678901234567890123456789012345678901234567890", 71);
    weir_chart_table_end(&t);
    assert_int_equal(fclose(out), 0);
    check_form();
    assert_int_equal(times("<tr>"), 3);
    assert_int_equal(times("<td"), 8);
    assert_non_null(strstr(text, "title=\"0.3333333333333333\""));
    assert_non_null(strstr(text, ">0.333</td>"));
    assert_non_null(strstr(text, "a&lt;<mark>b</mark>"));
    assert_non_null(strstr(text, "&lt;#9&gt;"));
    drop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_numbers),
        cmocka_unit_test(test_held_zero_stays),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_names_thin_out),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_bars),
        cmocka_unit_test(test_band_cut_off),
        cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_legend_shows_what_is_drawn),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_strip),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
