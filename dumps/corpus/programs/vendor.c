// vendor: the library of the dump net10-wks-vendor-heap, in which a native thread writes to an address that is not mapped.
//
//   gcc -O1 -g0 -shared -fPIC -o libvendor2.so vendor.c -lpthread
//
// V_ARG=thread, with DOTNET_DbgEnableMiniDump=1; threadabort, call, callabort and mthread are the variants of the program at the end, which is
// compiled and run as extra.cs says.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static int mode;
__attribute__((noinline)) void vendor_write(int *p, int v) { *p = v; __asm__ volatile(""); }
__attribute__((noinline)) static void inner(int d) { volatile char b[64]; b[d & 63] = 1; if (d) inner(d - 1); else if (mode == 1) abort(); else vendor_write((int *)0xdead0000, b[0]); b[1] = 2; }
static void *run(void *a) { inner(3); return 0; }
void vendor_start(int m) { pthread_t t; mode = m; pthread_create(&t, 0, run, 0); sleep(5); }
void vendor_call(int m) { mode = m; inner(2); }
int vendor_back(int (*f)(int), int m) { mode = m; return f(1) + 1; }

// ---- vend.cs ----
// using System; using System.Runtime.InteropServices; using System.Threading; using System.Runtime.CompilerServices;
// public static class V {
//   [DllImport("libvendor2.so")] static extern void vendor_start(int m);
//   [DllImport("libvendor2.so")] static extern void vendor_call(int m);
//   public static void Main() { var a = new[] { Environment.GetEnvironmentVariable("V_ARG") };
//     if (a[0] == "thread") Native(0); else if (a[0] == "threadabort") Native(1); else if (a[0] == "call") Call(0); else if (a[0] == "callabort") Call(1);
//     else { var t = new Thread(() => Call(0)); t.Start(); t.Join(); }
//   }
//   [MethodImpl(MethodImplOptions.NoInlining)] static void Native(int m) { vendor_start(m); }
//   [MethodImpl(MethodImplOptions.NoInlining)] static void Call(int m) { vendor_call(m); }
// }
