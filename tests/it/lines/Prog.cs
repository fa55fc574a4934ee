using System;
using System.Threading;
using System.Collections.Generic;

namespace E2E {
    class Worker {
        readonly ManualResetEvent gate;
        public Worker(ManualResetEvent gate) { this.gate = gate; }

        public void Outer(int n) {
            int k = n * 2;
            if (n > 0) {
                Outer(n - 1);                       // line 13
                k++;
            } else {
                Generic<string>(k,
                    "x");                           // statement at 16
            }
            GC.KeepAlive(k);
        }

        void Generic<T>(int k, T t) {
            try {
                throw new InvalidOperationException("inner " + k);   // line 24
            } catch (InvalidOperationException e) {
                held = e;
                try {
                    Wrap(e);                         // line 28
                } catch (ApplicationException) {
                    gate.WaitOne();                  // line 30: here it waits
                }
            }
        }

        static void Wrap(Exception e) {
            throw new ApplicationException("outer", e);   // line 36
        }
        Exception held;
    }

    class Program {
        static int total;
        static void Main(string[] args) {
            var gate = new ManualResetEvent(false);
            var threads = new List<Thread>();
            for (int i = 0; i < 3; i++) {
                int depth = i;
                var t = new Thread(() => {
                    new Worker(gate).Outer(depth);    // line 49
                });
                t.Start();
                threads.Add(t);
            }
            var s = new Thread(Spin);
            s.IsBackground = true;
            s.Start();
            for (int i = 0; i < 100000; i++) { total += i % 7; }
            Thread.Sleep(500);
            total++;
            while (true) {
                Thread.Sleep(100000);                 // line 61
            }
        }
        static void Spin() {
            int[] a = new int[10];
            for (int i = 0; ; i++) {
                a[i % 10]++;
                if (a[3] > 5000) {
                    new ManualResetEvent(false).WaitOne();   // line 69
                }
            }
        }
    }
}
