#include "cli/run_progress.h"

#include <signal.h>

#include "core/base/duration.h"
#include "fmt/format.h"

namespace wavetank::cli {
namespace {

std::atomic<bool> end_requested{false};

void OnSignal(int number) {
  // The default action is back (SA_RESETHAND): a second one ends the program.
  end_requested = true;
  (void)number;
}

}  // namespace

void RunProgress::Attach(scenario::RunOptions* options, const std::string& scenario) {
  scenario_ = scenario;
  begun_ms_ = looked_ms_ = RealMillis();
  if (line_.on()) options->on_tick = [this](const scenario::Tick& tick) { Show(tick); };
}

void RunProgress::Show(const scenario::Tick& tick) {
  const int64_t now = RealMillis();
  if (tick.step != step_) {
    if (step_ == 0) steps_begun_ms_ = now;
    step_ = tick.step;
  }
  if (now - looked_ms_ < 250) return;
  events_per_second_ = (tick.events - looked_events_) * 1000 / (now - looked_ms_);
  looked_ms_ = now;
  looked_events_ = tick.events;
  proxies_ = tick.proxies();
  std::string text = fmt::format("{}: {}", scenario_, tick.what);
  if (tick.step > 0) text += fmt::format(" ({} of {})", tick.step, tick.steps);
  text += fmt::format("  {} virtual, {} events/s, {} proxies connected", FormatDuration(tick.since_beginning),
                      events_per_second_, proxies_);
  // Steps take as long as those before them did, as far as anybody can know.
  if (tick.step > 1) {
    const auto done = static_cast<int64_t>(tick.step) - 1, all = static_cast<int64_t>(tick.steps);
    text += fmt::format(", about {} s left", ((now - steps_begun_ms_) * (all - done) / done + 999) / 1000);
  }
  line_.Say(text);
}

EndRequest::EndRequest() {
  end_requested = false;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

EndRequest::~EndRequest() {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>* EndRequest::flag() const { return &end_requested; }

}  // namespace wavetank::cli
