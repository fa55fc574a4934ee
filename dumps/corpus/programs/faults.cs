// faults: the program of the dump *-hangs-heap.
//
//   faults SCENARIO N     prints "ready" to standard error and waits for ever
//
// hangs: 30 threads asleep at one place; 12 that are blocked until the task of an asynchronous method is complete, which awaits a promise; 13
//        methods at a semaphore, of which one has entered it and awaits the promise; 120 exceptions that one method has thrown, and as many
//        faulted tasks that are not observed; 2 threads that run. The other scenarios are one of these each, and: stdout, writers of which one
//        is in write(2) to a full pipe (`faults stdout 4 > fifo`), late, a starved pool, clients, connection pools of HttpClient.
//
// Compiled with Mono's mcs and run on .NET 8 to 11 as extra.cs. Then
//   env -i PATH=/usr/bin DOTNET_gcServer=0 net10/faults hangs &
//   net10/createdump -h -f net10-wks-hangs-heap.dmp PID
using System; using System.Collections.Generic; using System.IO; using System.Net; using System.Net.Sockets; using System.Reflection; using System.Runtime.CompilerServices; using System.Text; using System.Threading; using System.Threading.Tasks;
namespace Shop {
  public class BankException : Exception { public BankException(string m) : base(m) { } }
  public static class Gate { public static readonly SemaphoreSlim Slot = new SemaphoreSlim(1, 1); public static readonly TaskCompletionSource<string> Never = new TaskCompletionSource<string>(TaskCreationOptions.RunContinuationsAsynchronously); }
  public static class Import {
    public static void Start(int n) { for (int i = 0; i < n; i++) { int k = i; new Thread(() => Run(k), 262144) { IsBackground = true, Name = "import " + k }.Start(); } }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Run(int k) { Download(k); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Download(int k) { Thread.Sleep(Timeout.Infinite); }
  }
  public static class Miner {
    public static volatile bool Stop; static long sum;
    public static void Start(int n) { for (int i = 0; i < n; i++) { int k = i; new Thread(() => Dig(k)) { IsBackground = true, Name = "miner " + k }.Start(); } }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Dig(long x) { while (!Stop) { x = Step(x); } sum += x; }
    [MethodImpl(MethodImplOptions.NoInlining)] static long Step(long x) { for (int i = 0; i < 1000; i++) x = x * 6364136223846793005 + 1; return x; }
  }
  public static class Bank {
    public static async Task<string> Pay(int i) { await Gate.Slot.WaitAsync(); try { return await Call(i); } finally { Gate.Slot.Release(); } }
    static async Task<string> Call(int i) { return await Gate.Never.Task + i; }
    public static async Task<string> Quote(int i) { await Task.Delay(1); return await Rate(i); }
    static async Task<string> Rate(int i) { return await Gate.Never.Task + i; }
    [MethodImpl(MethodImplOptions.NoInlining)] public static string Price(int i) { return Quote(i).Result; }
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Refuse(int i) { throw new BankException("order " + i + " is closed"); }
    public static async Task Report(int i) { await Task.Delay(1); throw new TimeoutException("bank did not answer, try " + i); }
  }
  public static class P {
    static readonly List<object> keep = new List<object>();
    static void Thread_(string name, Action a) { var t = new Thread(() => a()) { IsBackground = true, Name = name }; t.Start(); keep.Add(t); }
    static void Clients(int n) {
      var listener = new TcpListener(IPAddress.Loopback, 0); listener.Start(); int port = ((IPEndPoint)listener.LocalEndpoint).Port;
      Thread_("server", () => { for (;;) { var c = listener.AcceptTcpClient(); keep.Add(c); Thread_("connection", () => { var s = c.GetStream(); var buf = new byte[4096]; var answer = Encoding.ASCII.GetBytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); while (s.Read(buf, 0, buf.Length) > 0) s.Write(answer, 0, answer.Length); }); } });
      var type = Type.GetType("System.Net.Http.HttpClient, System.Net.Http", true); var get = type.GetMethod("GetStringAsync", new[] { typeof(string) });
      for (int i = 0; i < n; i++) { var client = Activator.CreateInstance(type); keep.Add(client); ((Task)get.Invoke(client, new object[] { "http://127.0.0.1:" + port + "/price/" + i })).Wait(); }
    }
    public static void Main(string[] args) {
      int n = args.Length > 1 ? int.Parse(args[1]) : 10;
      switch (args[0]) {
        case "places": Import.Start(n); break;
        case "spin": Miner.Start(n); break;
        case "syncover": for (int i = 0; i < n; i++) { int k = i; if (k % 2 == 0) Thread_("desk " + k, () => Bank.Price(k)); else keep.Add(Task.Run(() => Bank.Price(k))); } break;
        case "semaphore": for (int i = 0; i < n; i++) keep.Add(Bank.Pay(i)); break;
        case "storm": for (int i = 0; i < n; i++) { try { Bank.Refuse(i); } catch (BankException) { } } for (int i = 0; i < n / 5; i++) keep.Add(Bank.Report(i)); break;
        case "clients": Clients(n); break;
        case "stdout": for (int i = 0; i < n; i++) { int k = i; Thread_("writer " + k, () => { for (;;) Console.Out.WriteLine(new string('x', 200) + k); }); } break;
        case "late": ThreadPool.SetMinThreads(1, 1); ThreadPool.SetMaxThreads(2, 2); for (int i = 0; i < 4; i++) { int k = i; keep.Add(Task.Run(() => Bank.Price(k))); } for (int i = 0; i < n; i++) keep.Add(new Timer(_ => { }, null, 1000 + i, 1000)); break;
        case "promise": for (int i = 0; i < n; i++) keep.Add(Bank.Quote(i)); break;
        case "hangs":
          Import.Start(30); for (int i = 0; i < 12; i++) { int k = i; Thread_("desk " + k, () => Bank.Price(k)); } for (int i = 0; i < 13; i++) keep.Add(Bank.Pay(i));
          for (int i = 0; i < 120; i++) { try { Bank.Refuse(i); } catch (BankException) { } keep.Add(Bank.Report(i)); } Miner.Start(2); break;
        case "idle": break;
      }
      Thread.Sleep(4000); Console.Error.WriteLine("ready"); Thread.Sleep(Timeout.Infinite);
    }
  }
}
