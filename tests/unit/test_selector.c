/* Selectors (hooks/README.md). */
#include "run_kit.h"

static weir_model *brook; /* gpt2: 8 layers, C 192, 6 heads of 32, F 768 */

static int open_brook(void **state)
{
    (void)state;
    brook = kit_open(NULL);
    return 0;
}

static int close_brook(void **state)
{
    (void)state;
    weir_model_free(brook);
    return 0;
}

static weir_selector *parse(const char *text)
{
    weir_err err = {0};
    weir_selector *s;
    weir_status st = weir_selector_parse(&s, brook, text, &err);
    if (st)
        fail_msg("%s: %s", text, err.msg);
    return s;
}

static weir_selector *build(const weir_model *m, const char *hooks, const char *layers, const char *sites)
{
    weir_err err = {0};
    weir_selector *s;
    kit_ok(weir_selector_build(&s, m, hooks, layers, sites, &err), &err);
    return s;
}

/* The names selected, joined by spaces. */
static void names_are(const weir_model *m, weir_selector *s, const char *want)
{
    char got[4096] = "";
    const weir_point *p;
    int64_t n = weir_model_points(m, &p), count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!weir_selector_matches(s, &p[i]))
            continue;
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", *got ? " " : "", p[i].name);
        count++;
    }
    assert_string_equal(got, want);
    assert_int_equal(weir_selector_count(s), count);
    weir_selector_free(s);
}

static void units_are(const char *text, const char *point, const char *want)
{
    weir_selector *s = parse(text);
    char got[1024] = "";
    const int64_t *idx;
    int64_t n;
    weir_selector_units(s, weir_model_point(brook, point), &idx, &n);
    if (n < 0)
        snprintf(got, sizeof got, "all");
    for (int64_t i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%lld", i ? " " : "", (long long)idx[i]);
    if (strcmp(got, want) != 0)
        fail_msg("%s selects \"%s\" of %s, not \"%s\"", text, got, point, want);
    weir_selector_free(s);
}

static void says(const weir_model *m, const char *hooks, const char *layers, const char *sites, const char *want)
{
    weir_err err = {0};
    weir_selector *s = (weir_selector *)&err;
    weir_status st = weir_selector_build(&s, m, hooks, layers, sites, &err);
    assert_true(st < 0);
    assert_null(s);
    if (!strstr(err.msg, want))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, want);
}

static void refused(const char *text, const char *want)
{
    says(brook, text, NULL, NULL, want);
}

static void test_names(void **state)
{
    (void)state;
    names_are(brook, parse("blocks.6.mlp.hook_post"), "blocks.6.mlp.hook_post");
    names_are(brook, parse("blocks.6.mlp.hook-post"), "blocks.6.mlp.hook_post");
    names_are(brook, parse(" hook_embed "), "hook_embed");
    names_are(brook, parse("blocks.{0,3}.hook_resid_pre"), "blocks.0.hook_resid_pre blocks.3.hook_resid_pre");
    names_are(
        brook, parse("blocks.?.attn.hook_{q,{k,v}}[:]"),
        "blocks.0.attn.hook_q blocks.0.attn.hook_k blocks.0.attn.hook_v blocks.1.attn.hook_q blocks.1.attn.hook_k "
        "blocks.1.attn.hook_v blocks.2.attn.hook_q blocks.2.attn.hook_k blocks.2.attn.hook_v blocks.3.attn.hook_q "
        "blocks.3.attn.hook_k blocks.3.attn.hook_v blocks.4.attn.hook_q blocks.4.attn.hook_k blocks.4.attn.hook_v "
        "blocks.5.attn.hook_q blocks.5.attn.hook_k blocks.5.attn.hook_v blocks.6.attn.hook_q blocks.6.attn.hook_k "
        "blocks.6.attn.hook_v blocks.7.attn.hook_q blocks.7.attn.hook_k blocks.7.attn.hook_v");
    names_are(brook, parse("*.7.*_scale"), "blocks.7.ln1.hook_scale blocks.7.ln2.hook_scale");
    names_are(brook, parse("*final*out"), "ln_final.hook_out");
    names_are(brook, parse("u*k_*n"), "unembed.hook_in");
    const weir_point *p;
    int64_t points = weir_model_points(brook, &p), layers = weir_model_info_of(brook)->L;
    weir_selector *most = parse("*"), *all = parse("{*,*scores,*pattern,*result}");
    assert_int_equal(weir_selector_count(most), points - 3 * layers); /* maps and results: only when spelled */
    assert_int_equal(weir_selector_count(all), points);
    weir_selector_free(most);
    weir_selector_free(all);
    names_are(brook, parse("*.7.attn.hook_pat*"), "blocks.7.attn.hook_pattern");
}

static void test_short_names(void **state)
{
    static const struct {
        const char *site, *name;
    } sites[] = {{"resid_pre", "hook_resid_pre"},
                 {"resid-mid", "hook_resid_mid"},
                 {"resid_post", "hook_resid_post"},
                 {"attn_out", "hook_attn_out"},
                 {"mlp-out", "hook_mlp_out"},
                 {"ln1", "ln1.hook_out"},
                 {"ln2", "ln2.hook_out"},
                 {"pre", "mlp.hook_pre"},
                 {"post", "mlp.hook_post"},
                 {"mlp_post", "mlp.hook_post"},
                 {"q", "attn.hook_q"},
                 {"k", "attn.hook_k"},
                 {"v", "attn.hook_v"},
                 {"z", "attn.hook_z"},
                 {"pattern", "attn.hook_pattern"}};
    (void)state;
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
        char want[64];
        snprintf(want, sizeof want, "blocks.2.%s", sites[i].name);
        names_are(brook, build(brook, NULL, "2", sites[i].site), want);
    }
    names_are(brook, parse("L6N421"), "blocks.6.mlp.hook_post");
    names_are(brook, parse("L6H3"), "blocks.6.attn.hook_z");
    weir_model *m = kit_open(KIT_LLAMA);
    names_are(m, build(m, NULL, "0", "gate,up,post"),
              "blocks.0.mlp.hook_pre blocks.0.mlp.hook_pre_linear blocks.0.mlp.hook_post");
    weir_model_free(m);
}

static void test_layers(void **state)
{
    (void)state;
    names_are(brook, build(brook, NULL, "0-1,7", "post"),
              "blocks.0.mlp.hook_post blocks.1.mlp.hook_post blocks.7.mlp.hook_post");
    names_are(brook, build(brook, NULL, NULL, "resid_pre"),
              "blocks.0.hook_resid_pre blocks.1.hook_resid_pre blocks.2.hook_resid_pre blocks.3.hook_resid_pre "
              "blocks.4.hook_resid_pre blocks.5.hook_resid_pre blocks.6.hook_resid_pre blocks.7.hook_resid_pre");
    names_are(brook, build(brook, "blocks.*.hook_mlp_out,hook_embed", "6", NULL), "hook_embed blocks.6.hook_mlp_out");
    names_are(brook, build(brook, "hook_embed", "6", "post"), "hook_embed blocks.6.mlp.hook_post");
    names_are(brook, build(brook, NULL, "6", NULL),
              "blocks.6.hook_resid_pre blocks.6.ln1.hook_out blocks.6.hook_attn_out blocks.6.hook_resid_mid "
              "blocks.6.ln2.hook_out "
              "blocks.6.mlp.hook_post blocks.6.hook_mlp_out blocks.6.hook_resid_post");
    weir_selector *all = build(brook, NULL, "all", NULL);
    assert_int_equal(weir_selector_count(all), 64);
    weir_selector_free(all);
    weir_model *m = kit_open(KIT_NEOX); /* parallel: the default set without resid_mid */
    names_are(m, build(m, NULL, "1", NULL),
              "blocks.1.hook_resid_pre blocks.1.ln1.hook_out blocks.1.hook_attn_out blocks.1.ln2.hook_out "
              "blocks.1.mlp.hook_post "
              "blocks.1.hook_mlp_out blocks.1.hook_resid_post");
    says(m, NULL, "1", "resid_mid", "this model has no hook point \"resid_mid\"");
    weir_model_free(m);
}

static void test_units(void **state)
{
    (void)state;
    units_are("post", "blocks.3.mlp.hook_post", "all");
    units_are("post", "blocks.3.hook_mlp_out", "");
    units_are("blocks.6.mlp.hook_post[-1, 421]", "blocks.6.mlp.hook_post", "421");
    units_are("blocks.6.mlp.hook_post[:, 3+1:3+-1]", "blocks.6.mlp.hook_post", "1 2 3 767");
    units_are("post[:,764:]", "blocks.0.mlp.hook_post", "764 765 766 767");
    units_are("post[:,:2]", "blocks.0.mlp.hook_post", "0 1");
    units_are("post[:,-2:]", "blocks.0.mlp.hook_post", "766 767");
    units_are("post[:,-2:-1]", "blocks.0.mlp.hook_post", "766");
    units_are("post[:,:]", "blocks.0.mlp.hook_post", "all");
    units_are("post[:,3+:]", "blocks.0.mlp.hook_post", "all");
    units_are("post[5]", "blocks.0.mlp.hook_post", "all"); /* one entry is a position */
    units_are("L6N421", "blocks.6.mlp.hook_post", "421");
    units_are("L6N0[-1]", "blocks.6.mlp.hook_post", "0");
    units_are("blocks.1.attn.hook_z[:,2,0:3]", "blocks.1.attn.hook_z", "64 65 66");
    units_are("blocks.1.attn.hook_z[:,-1+0,31]", "blocks.1.attn.hook_z", "31 191");
    units_are("blocks.1.attn.hook_q[:,:,1]", "blocks.1.attn.hook_q", "1 33 65 97 129 161");
    units_are("blocks.1.attn.hook_pattern[:,1,0:2]", "blocks.1.attn.hook_pattern", "256 257");
    units_are("blocks.1.ln1.hook_scale[:,0]", "blocks.1.ln1.hook_scale", "0");
    weir_selector *s = parse("L6H3");
    const int64_t *idx;
    int64_t n;
    weir_selector_units(s, weir_model_point(brook, "blocks.6.attn.hook_z"), &idx, &n);
    assert_int_equal(n, 32);
    assert_int_equal(idx[0], 96);
    assert_int_equal(idx[31], 127);
    weir_selector_free(s);
    s = build(brook, "post[:,1],L6N421,post[:,0:2]", "6", NULL); /* items add up */
    weir_selector_units(s, weir_model_point(brook, "blocks.6.mlp.hook_post"), &idx, &n);
    assert_int_equal(n, 3);
    assert_true(idx[0] == 0 && idx[1] == 1 && idx[2] == 421);
    assert_false(weir_selector_has_positions(s));
    weir_selector_free(s);
}

static void rows_are(const char *text, int64_t len, const char *want)
{
    weir_selector *s = parse(text);
    const weir_point *p = weir_model_point(brook, "blocks.6.mlp.hook_post");
    for (int64_t i = 0; i < len; i++)
        if (weir_selector_row_at(s, p, i, len) != (want[i] == 'x'))
            fail_msg("%s: position %lld of %lld", text, (long long)i, (long long)len);
    weir_selector_free(s);
}

static void test_positions(void **state)
{
    (void)state;
    rows_are("post", 4, "xxxx");
    rows_are("post[:]", 4, "xxxx");
    rows_are("post[-1]", 4, "...x");
    rows_are("post[0+-1]", 4, "x..x");
    rows_are("post[1:3]", 4, ".xx.");
    rows_are("post[-3:]", 4, ".xxx");
    rows_are("post[-3:]", 2, "xx");
    rows_are("post[ :-1 ]", 4, "xxx.");
    rows_are("post[7]", 4, "....");
    rows_are("post[2:-1]", 4, "..x.");
    rows_are("L6N421[2]", 4, "..x.");
    weir_selector *s = parse("post[-1,3]");
    assert_true(weir_selector_has_positions(s));
    weir_selector_free(s);
    s = parse("post[:,3]");
    assert_false(weir_selector_has_positions(s));
    weir_selector_free(s);
    s = build(brook, "post[0],L3H1[-1],z[:]", "3", NULL);
    const weir_point *post = weir_model_point(brook, "blocks.3.mlp.hook_post"),
                     *z = weir_model_point(brook, "blocks.3.attn.hook_z");
    assert_true(weir_selector_row_at(s, post, 0, 3) && !weir_selector_row_at(s, post, 2, 3));
    assert_true(weir_selector_row_at(s, z, 1, 3));
    assert_false(weir_selector_row_at(s, weir_model_point(brook, "hook_embed"), 0, 3));
    weir_selector_free(s);
    s = build(brook, NULL, "6", NULL);
    assert_true(weir_selector_row_at(s, weir_model_point(brook, "blocks.6.hook_mlp_out"), 0, 1));
    assert_false(weir_selector_row_at(s, post, 0, 1));
    assert_false(weir_selector_has_positions(s));
    weir_selector_free(s);
}

static void test_unknown_names(void **state)
{
    (void)state;
    refused("blocks.6.mlp.hook_pots", "this model has no hook point \"blocks.6.mlp.hook_pots\"; the nearest is "
                                      "\"blocks.6.mlp.hook_post\" (weir trace --list-hooks shows all)");
    refused("blocks.*.hook_resid_pree", "the nearest is \"blocks.*.hook_resid_pre\"");
    refused("resid_pst", "the nearest is \"resid_post\"");
    refused("hook_embedd", "the nearest is \"hook_embed\"");
    refused("blocks.2.attn.hook_rot_q", "no hook point");
    refused("blocks.{0-3}.hook_resid_pre", "\"blocks.{0_3}.hook_resid_pre\" names no layer: braces hold a list");
    refused("up", "no hook point");
    refused("gate", "no hook point");
    refused("blocks.8.hook_resid_pre", "layer 8 does not exist: the model has 8 layers, 0 to 7");
    refused("L8N1", "layer 8 does not exist: the model has 8 layers, 0 to 7");
    refused("L99999999999999999H1", "layer 99999999999999999 does not exist");
    refused("L999999999999999999999N1", "no hook point");
    says(brook, NULL, "8", NULL, "layer 8 does not exist: the model has 8 layers, 0 to 7");
    says(brook, NULL, "6-9", "post", "layer 9 does not exist");
    says(brook, "blocks.2.hook_mlp_out", "6", NULL, "lies in none of the chosen layers");
}

static void test_bad_texts(void **state)
{
    (void)state;
    says(brook, NULL, NULL, NULL, "nothing is selected");
    refused("", "a selector is empty");
    refused("post,,pre", "a selector is empty");
    refused("[3]", "a selector is empty");
    refused("post[", "a number, a range a:b or : was expected");
    refused("post[]", "a number");
    refused("post[1", "or ] was expected");
    refused("post[1]x", "nothing may follow");
    refused("post[1,2,3]", "the brackets have three entries");
    refused("post[1,2,3,4]", "at most three entries");
    refused("post[3:1]", "b must be greater than a");
    refused("post[-1:-1]", "b must be greater than a");
    refused("post[1:2:3]", "was expected");
    refused("post[a]", "a number");
    refused("post[99999999999999999999]", "a number");
    refused("post[:,768]", "unit 768 does not exist: blocks.0.mlp.hook_post has 768, 0 to 767");
    refused("post[:,-769]", "unit -769 does not exist");
    refused("post[:,700:769]", "unit 769 of a range does not exist");
    refused("z[:,6]", "head 6 does not exist: blocks.0.attn.hook_z has 6, 0 to 5");
    refused("z[:,0,32]", "unit 32 does not exist");
    refused("pattern[:,0,-1]", "are counted from 0");
    refused("pattern[:,0,256]", "key 256 does not exist");
    refused("L6N421[1,2]", "names its unit already");
    refused("L6N768", "unit 768 does not exist");
    refused("L6H6", "head 6 does not exist");
    refused("blocks.{0,1.hook_embed", "a { has no }");
    refused("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "more than 1024 names");
    says(brook, NULL, "", NULL, "a number, a range");
    says(brook, NULL, "3-1", NULL, "a number, a range");
    says(brook, NULL, "1,x", NULL, "a number, a range");
    says(brook, NULL, "-1", NULL, "a number, a range");
    char longest[400];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    refused(longest, "399 bytes");
    longest[200] = 0;
    refused(longest, "no hook point");
    memset(longest, '*', 100);
    memset(longest + 100, 'z', 100);
    refused(longest, "no hook point");
    memcpy(longest, "blocks.", 7);
    refused(longest, "no hook point");
}

/* A point of another model is not selected. */
static void test_other_model(void **state)
{
    weir_model *m = kit_open(KIT_GPT2);
    weir_selector *s = parse("*");
    const int64_t *idx;
    int64_t n;
    (void)state;
    assert_false(weir_selector_matches(s, weir_model_point(m, "hook_embed")));
    weir_selector_units(s, weir_model_point(m, "hook_embed"), &idx, &n);
    assert_int_equal(n, 0);
    weir_selector_free(s);
    weir_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),     cmocka_unit_test(test_short_names), cmocka_unit_test(test_layers),
        cmocka_unit_test(test_units),     cmocka_unit_test(test_positions),   cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_bad_texts), cmocka_unit_test(test_other_model),
    };
    return cmocka_run_group_tests(tests, open_brook, close_brook);
}
