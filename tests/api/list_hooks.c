/* Lists every hook point of a model, with its shape:   list_hooks [MODEL]   (default: brook) */
#include <weir/weir.h>

int main(int argc, char **argv)
{
    weir_err err = {0};
    weir_model *model;
    char line[1024];
    if (weir_model_open(&model, argc > 1 ? argv[1] : NULL, NULL, &err) != WEIR_OK) {
        fprintf(stderr, "%s\n", weir_err_line(&err, line, sizeof line));
        return 1;
    }
    const weir_point *point;
    int64_t n = weir_model_points(model, &point);
    for (int64_t i = 0; i < n; i++)
        printf("%-40s [%s] %lld\n", point[i].name, point[i].letters, (long long)point[i].width);
    weir_model_free(model);
    return n > 0 ? 0 : 1;
}
