// How fast evidence is read: bytes of istiod's log into inputs and claims.
#include <benchmark/benchmark.h>

#include <string>

#include "fmt/format.h"
#include "import/evidence/evidence.h"
#include "import/istiod/istiod_log.h"
#include "import/istiod/record_reader.h"
#include "import/text/envelope.h"
#include "import/text/line_splitter.h"

namespace wavetank::importing {
namespace {

// Full pushes to 200 proxies, one behind the other: what a busy istiod's log consists of.
std::string BusyLog() {
  std::string out;
  for (int second = 0; second < 50; ++second) {
    const std::string time = fmt::format("2024-05-06T07:08:{:02}.", second);
    out +=
        time +
        "000000Z\tinfo\tads\tPush debounce stable[2] 1 for config DestinationRule/shop/web: 100.2ms since last change, "
        "100.2ms since last push, full=true\n";
    out += time + "000100Z\tinfo\tads\tXDS: Pushing:v/1 Services:400 ConnectedEndpoints:200 Version:v/1\n";
    for (int proxy = 0; proxy < 200; ++proxy) {
      for (const char* type : {"CDS", "EDS", "LDS", "RDS"}) {
        out += fmt::format(
            "{}{:06}Z\tinfo\tads\t{}: PUSH for node:web-{}.shop resources:411 size:154.7kB cached:207/409\n", time,
            1000 + proxy, type, proxy);
      }
    }
  }
  return out;
}

void BM_IstiodLog(benchmark::State& state) {
  const std::string log = BusyLog();
  for (auto _ : state) {
    Evidence evidence;
    IstiodLog istiod("istiod", evidence);
    RecordReader reader("istiod.log", evidence.refusals, [&](const LogRecord& r) { istiod.Add(r, "istiod.log"); });
    Envelope envelope;
    LineSplitter splitter([&](std::string_view line, uint64_t number, bool cut) {
      reader.Line(envelope.Unwrap(line).line, number, cut);
    });
    splitter.Feed(log);
    reader.Finish();
    istiod.Finish();
    if (evidence.inputs.size() != 50) state.SkipWithError("another number of inputs");
    benchmark::DoNotOptimize(evidence);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * log.size()));
}
BENCHMARK(BM_IstiodLog)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace wavetank::importing
