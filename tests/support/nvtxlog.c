/* An NVTX v3 injection library: logs ranges to $NVTXLOG, one a line, or only counts them where that is unset.
 * Built by the tests (cc -O2 -shared -fPIC), loaded by NVTX through NVTX_INJECTION64_PATH. Declares the little of
 * NVTX's interface that it needs (nvtx3/nvToolsExt.h, nvtxTypes.h), so that no CUDA toolkit is needed. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

typedef void (*Function)(void);
typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  int64_t payload;
  int32_t message_type;
  union { const char *ascii; const wchar_t *unicode; intptr_t registered; } message;
} Attributes;
typedef struct { size_t size; int (*module)(int module, Function ***table, unsigned *size); } Callbacks;
typedef const void *(*GetExportTable)(uint32_t id);

enum { ETID_CALLBACKS = 1, MODULE_CORE2 = 5 };
enum { START = 2, END, PUSH, POP, CATEGORY = 8, REGISTER = 10, REGISTER_WIDE, DOMAIN_CREATE };

static FILE *out;
static long pushes;
static char domains[64][64], strings[8192][128], categories[64][64];
static int n_domains, n_strings = 1;

static const char *text(const Attributes *a) {
  if (a->message_type == 1) return a->message.ascii;
  if (a->message_type == 3) return strings[a->message.registered & 8191];
  return "?";
}

static void line(const char *what, intptr_t domain, const Attributes *a, long long id) {
  if (!out) return;
  if (a) fprintf(out, "%s\t%s\t%s\t%lld\t%s\t%lld\n", what, domains[domain & 63], categories[a->category & 63],
                 (long long)a->payload, text(a), id);
  else fprintf(out, "%s\t%s\t\t\t\t%lld\n", what, domains[domain & 63], id);
}

static void *domain_create(const char *name) {
  snprintf(domains[++n_domains & 63], 64, "%s", name);
  return (void *)(intptr_t)n_domains;
}
static void name_category(void *d, uint32_t id, const char *name) { (void)d; snprintf(categories[id & 63], 64, "%s", name); }
static intptr_t register_ascii(void *d, const char *s) {
  (void)d;
  snprintf(strings[n_strings & 8191], 128, "%s", s);
  return n_strings++;
}
static intptr_t register_wide(void *d, const wchar_t *s) {
  char narrow[512];
  narrow[0] = 0;
  wcstombs(narrow, s, sizeof narrow);
  return register_ascii(d, narrow);
}
static int push(void *d, const Attributes *a) { pushes++; line("push", (intptr_t)d, a, 0); return 0; }
static int pop(void *d) { line("pop", (intptr_t)d, NULL, 0); return 0; }
static uint64_t start(void *d, const Attributes *a) {
  static uint64_t next = 1;
  line("start", (intptr_t)d, a, (long long)next);
  return next++;
}
static void end(void *d, uint64_t id) { line("end", (intptr_t)d, NULL, (long long)id); }
static void finish(void) { if (out) fclose(out); }

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(GetExportTable get) {
  const Callbacks *callbacks = get(ETID_CALLBACKS);
  Function **table;
  unsigned size;
  if (!callbacks || !callbacks->module(MODULE_CORE2, &table, &size) || size <= DOMAIN_CREATE) return 0;
  *table[DOMAIN_CREATE] = (Function)domain_create;
  *table[CATEGORY] = (Function)name_category;
  *table[REGISTER] = (Function)register_ascii;
  *table[REGISTER_WIDE] = (Function)register_wide;
  *table[PUSH] = (Function)push;
  *table[POP] = (Function)pop;
  *table[START] = (Function)start;
  *table[END] = (Function)end;
  const char *path = getenv("NVTXLOG");
  if (path && (out = fopen(path, "w"))) atexit(finish);
  return 1;
}
