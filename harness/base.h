/* What every stage may use: the two words for errors, and the exit codes of the command line. */
#ifndef KBENCH_BASE_H
#define KBENCH_BASE_H

#include <stddef.h>
#include <stdint.h>

enum exit_code {
    EXIT_OK = 0,
    EXIT_ROW_FAILED = 1,    /* a row is wrong, crashed, timed out, implausible */
    EXIT_USAGE = 2,         /* usage, or input that can't be read */
    EXIT_REGRESSION = 3,
    EXIT_INCONCLUSIVE = 4,  /* also: marked rows under --strict */
    EXIT_ENVIRONMENT = 5,   /* no such device, folder not writable, disk full */
    EXIT_SKIPPED = 77,      /* tests only */
    EXIT_BUG = 99,
};

/* A machine or input that can't be gone on with. The text is "what: why; what to do". Ends the program with `code`. */
_Noreturn void die(enum exit_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A sentence for people on stderr, program goes on. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Hands an error code (0: none) to the caller. A failing case is data: it travels up as a code and becomes a row's status. */
#define TRY(call)                      \
    do {                               \
        int try_code_ = (call);        \
        if (try_code_) return try_code_; \
    } while (0)

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Memory or end: out of host memory in the parent is not a case, it is the machine. Zeroed. */
void *must_alloc(size_t count, size_t size);
void *must_grow(void *old, size_t count, size_t size);

/* snprintf that always ends the string and never complains about truncation; returns `ret`. */
char *text(char *ret, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Words as one line that a shell reads back as the same; malloc'ed. */
char *shell_words(int n, char *const *word);
char *shell_word(const char *word);

double now_s(void);  /* monotonic clock, seconds */

/* Folder that holds sweeps/, plots/ and results/: KBENCH_ROOT of the environment, else the one built from, else ".". */
const char *source_root(void);

#endif
