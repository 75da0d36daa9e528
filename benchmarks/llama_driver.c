/* llama.cpp as a contender of bench_llama: commands on standard input, a figure a line.
 *
 *     prompt COUNT THREADS        tokens per second of a prompt
 *     steps PAST COUNT THREADS    tokens per second after PAST tokens
 */
#include <llama.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kTokensMax = 65536, kBatch = 512 };

static struct llama_context *context;
static llama_token tokens[kTokensMax];
static int used;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void quiet(enum ggml_log_level level, const char *text, void *data) {
    (void)level, (void)text, (void)data;
}

static void keep(int count) {
    llama_memory_seq_rm(llama_get_memory(context), 0, count, -1);
    used = count;
}

static void append(int count) {
    for (int left = count; left > 0;) {
        const int some = left < kBatch ? left : kBatch;
        if (llama_decode(context, llama_batch_get_one(tokens + used, some)) != 0)
            exit(2);
        used += some, left -= some;
    }
    if (llama_get_logits_ith(context, -1) == NULL)
        exit(3);
}

int main(int count, char **words) {
    if (count != 4)
        return fprintf(stderr, "usage: %s MODEL CONTEXT REPACK\n", words[0]), 1;
    llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model_params model_params = llama_model_default_params();
    model_params.use_extra_bufts = atoi(words[3]) != 0;
    struct llama_model *model = llama_model_load_from_file(words[1], model_params);
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t)atoi(words[2]);
    context = model == NULL ? NULL : llama_init_from_model(model, params);
    if (context == NULL)
        return 1;
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    for (int index = 0; index < kTokensMax; ++index)
        tokens[index] = 300 + rand() % (vocabulary - 400);
    puts("ready"), fflush(stdout);
    char line[256];
    while (fgets(line, sizeof line, stdin) != NULL) {
        int first, second, threads;
        double start = 0, figure = 0;
        if (sscanf(line, "prompt %d %d", &first, &threads) == 2) {
            llama_set_n_threads(context, threads, threads);
            keep(0);
            start = seconds();
            append(first);
            figure = first / (seconds() - start);
        } else if (sscanf(line, "steps %d %d %d", &first, &second, &threads) == 3) {
            llama_set_n_threads(context, threads, threads);
            if (used > first)
                keep(first);
            append(first - used + 1); /* the last one is not timed */
            start = seconds();
            for (int step = 1; step < second; ++step)
                append(1);
            figure = (second - 1) / (seconds() - start);
        }
        printf("%.3f\n", figure), fflush(stdout);
    }
    return 0;
}
