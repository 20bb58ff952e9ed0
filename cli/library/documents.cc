// What is said of the program where it is installed, of the verbs' own definition: a manual page, completions of
// shells.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/verb.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::cli {
namespace {

using Words = std::vector<std::string>;

std::vector<const CLI::App*> Verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

Words OptionsOf(const CLI::App& app) {
  Words out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames()) out.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  }
  return out;
}

// roff takes a dot at a line's beginning, and backslashes, for its own.
std::string Roff(std::string text) {
  for (size_t at = 0; (at = text.find_first_of("\\-", at)) != std::string::npos; at += 2) text.insert(at, "\\");
  if (!text.empty() && (text[0] == '.' || text[0] == '\'')) text = "\\&" + text;
  return text;
}

void PrintOptions(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    // "TEXT:value in {...}" of an option with few values: the description names them.
    std::string type = option->get_type_size() == 0 ? "" : option->get_type_name();
    type.resize(std::min(type.find(':'), type.size()));
    const std::string value = type.empty() ? "" : fmt::format(" \\fI{}\\fR", Roff(type));
    std::cout << ".TP\n\\fB" << Roff(option->get_name(false, true)) << "\\fR" << value << "\n"
              << Roff(option->get_description()) << "\n";
  }
}

void PrintMan(const CLI::App& app) {
  std::cout << ".TH WAVETANK 1 \"\" \"" << VersionText() << "\" \"User Commands\"\n.SH NAME\nwavetank \\- "
            << "a wave tank for multi\\-cluster Istio\n.SH SYNOPSIS\n.B wavetank\n.I verb\n[options]\n.SH DESCRIPTION\n"
            << Roff(app.get_description()) << "\n.SH OPTIONS\n";
  PrintOptions(app);
  std::cout << ".SH VERBS\n";
  for (const CLI::App* verb : Verbs(app)) {
    std::cout << ".SS wavetank " << Roff(verb->get_name()) << "\n" << Roff(verb->get_description()) << "\n";
    PrintOptions(*verb);
    if (!verb->get_footer().empty()) std::cout << ".PP\n" << Roff(verb->get_footer()) << "\n";
  }
  std::cout << ".SH EXIT STATUS\n" << Roff(app.get_footer()) << "\n";
}

void PrintBash(const CLI::App& app) {
  Words verbs;
  for (const CLI::App* verb : Verbs(app)) verbs.push_back(verb->get_name());
  std::cout << "# bash completion of wavetank\n_wavetank() {\n  local word=${COMP_WORDS[COMP_CWORD]} options=\n"
            << "  if [ \"$COMP_CWORD\" = 1 ]; then\n    COMPREPLY=($(compgen -W '"
            << fmt::format("{} {}", fmt::join(verbs, " "), fmt::join(OptionsOf(app), " "))
            << "' -- \"$word\"))\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* verb : Verbs(app)) {
    const Words options = verb->get_name() == "help" ? verbs : OptionsOf(*verb);
    std::cout << fmt::format("    {}) options='{}' ;;\n", verb->get_name(), fmt::join(options, " "));
  }
  std::cout << "  esac\n  COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n}\n"
            << "complete -o default -F _wavetank wavetank\n";
}

// Within single quotes.
std::string Quoted(std::string text, std::string_view escape) {
  for (size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += escape.size()) text.replace(at, 1, escape);
  return text;
}

// The first sentence: a menu has one line.
std::string Short(const std::string& text) { return text.substr(0, text.find_first_of(".\n:;[]")); }

void PrintZsh(const CLI::App& app) {
  std::cout << "#compdef wavetank\n_wavetank() {\n  local -a verbs\n  verbs=(\n";
  for (const CLI::App* verb : Verbs(app))
    std::cout << fmt::format("    '{}:{}'\n", verb->get_name(), Quoted(Short(verb->get_description()), "'\\''"));
  std::cout << "  )\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n  case $words[2] in\n";
  for (const CLI::App* verb : Verbs(app)) {
    std::cout << fmt::format("    {}) _arguments", verb->get_name());
    for (const CLI::Option* option : verb->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        std::cout << fmt::format(" '--{}[{}]{}'", name, Quoted(Short(option->get_description()), "'\\''"),
                                 option->get_type_size() == 0 ? "" : ":value:_files");
      }
    }
    std::cout << " '*:file:_files' ;;\n";
  }
  std::cout << "  esac\n}\n_wavetank \"$@\"\n";
}

void PrintFish(const CLI::App& app) {
  std::cout << "# fish completion of wavetank\n";
  for (const CLI::App* verb : Verbs(app)) {
    std::cout << fmt::format("complete -c wavetank -n __fish_use_subcommand -a {} -d '{}'\n", verb->get_name(),
                             Quoted(Short(verb->get_description()), "\\'"));
    for (const CLI::Option* option : verb->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        std::cout << fmt::format("complete -c wavetank -n '__fish_seen_subcommand_from {}' -l {}{} -d '{}'\n",
                                 verb->get_name(), name, option->get_type_size() == 0 ? "" : " -r",
                                 Quoted(Short(option->get_description()), "\\'"));
      }
    }
  }
}

}  // namespace

void AddDocuments(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("documents", "The manual page, and completions of shells, of this definition");
  auto man = std::make_shared<bool>(false);
  auto shell = std::make_shared<std::string>();
  verb->add_flag("--man", *man, "The manual page wavetank(1)");
  verb->add_option("--completion", *shell, "Of this shell")->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->callback([&app, &outcome, man, shell] {
    if (*man == !shell->empty()) {
      outcome.code = Complain(absl::InvalidArgumentError("documents: say --man, or --completion bash, zsh or fish"));
    } else if (*man) {
      PrintMan(app);
    } else {
      (*shell == "bash" ? PrintBash : *shell == "zsh" ? PrintZsh : PrintFish)(app);
    }
  });
}

}  // namespace wavetank::cli
