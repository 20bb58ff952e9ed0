#include <CLI/CLI.hpp>

#include "cli/proxy_config.h"
#include "cli/verb.h"
#include "library/session/session.h"

namespace wavetank::cli {

void AddSession(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "session", "A world that another program drives: a request a line on standard input, JSON (docs/library.md)");
  auto channel = std::make_shared<int>(-1);
  verb->add_option("--fd", *channel, "Speak on this socket that was inherited, instead of standard input and output")
      ->check(CLI::Range(0, 1 << 20));
  verb->callback([channel, &outcome] {
    const bool own = *channel >= 0;
    outcome.code = session::Serve(own ? *channel : 0, own ? *channel : 1, ProxyConfigJson);
  });
}

}  // namespace wavetank::cli
