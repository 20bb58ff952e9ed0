#include "cli/help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/text/token_text.h"
#include "fmt/format.h"
#include "scenarios/language/yaml_reader.h"

namespace wavetank::cli {
namespace {

constexpr size_t kTextColumn = 26;

// A name at the margin and what it means beside it; below it where the name leaves no room.
std::string Entry(const std::string& name, const std::string& text) {
  std::string out = "  " + name;
  if (out.size() + 2 > kTextColumn) {
    out += "\n";
    if (text.empty()) return out;
    out += std::string(kTextColumn, ' ');
  } else {
    out.resize(kTextColumn, ' ');
  }
  return out + Wrapped(text, kHelpWidth - kTextColumn - 2, kTextColumn) + "\n";
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool positional) const override {
    return Entry(make_option_name(option, positional) + make_option_opts(option), make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* verb) const override {
    return Entry(verb->get_name(), verb->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return Wrapped(app->get_description(), kHelpWidth - 2, 0) + "\n";
  }
  std::string make_footer(const CLI::App* app) const override {
    const std::string footer = app->get_footer();
    return footer.empty() ? footer : Wrapped(footer, kHelpWidth - 2, 0) + "\n";
  }
  // The type of a value says little that its description does not; defaults and "required" do.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return {};
    std::string out = option->get_positional() ? "" : " " + option->get_type_name();
    if (const size_t bracket = out.find_first_of(":[{ ", 1); bracket != std::string::npos) out.resize(bracket);
    if (!option->get_default_str().empty()) out += "=" + option->get_default_str();
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) out += " ...";
    return option->get_required() ? out + " REQUIRED" : out;
  }
};

const CLI::Option* OptionOf(const CLI::App& verb, std::string_view name) {
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_name() == name) return option;
  }
  return nullptr;
}

// What is neither an option nor a place for one more argument; without the option's value.
std::string NotExpected(const CLI::App& verb, const std::string& word) {
  if (!word.starts_with('-')) {
    return FindToken(word).has_value() ? "one argument is too many"
                                       : fmt::format("'{}' is one argument too many", word);
  }
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_positional()) names.push_back(option->get_name());
  }
  const std::string_view near = scenario::Nearest(name, {names.begin(), names.end()});
  return fmt::format("'{}' is no option{}", name, near.empty() ? "" : fmt::format(": did you mean '{}'?", near));
}

std::string Reason(const CLI::App& verb, const CLI::ParseError& error) {
  const std::string said = error.what();
  // The library words what is missing before what is too much.
  if (!verb.remaining().empty()) return NotExpected(verb, verb.remaining().front());
  if (said.ends_with(" is required")) {
    const std::string name = said.substr(0, said.size() - std::string_view(" is required").size());
    const CLI::Option* option = OptionOf(verb, name);
    const std::string meaning = option == nullptr ? "" : option->get_description();
    return fmt::format("{} is missing{}", name, meaning.empty() ? "" : fmt::format(" ({})", meaning));
  }
  if (constexpr std::string_view begin = "Could not convert: "; said.starts_with(begin)) {
    const size_t equals = said.find(" = ");
    const std::string name = said.substr(begin.size(), equals - begin.size());
    const CLI::Option* option = OptionOf(verb, name);
    const std::string type = option == nullptr ? "" : option->get_type_name();
    return fmt::format("{}: '{}' is no {}", name, equals == std::string::npos ? "" : said.substr(equals + 3),
                       type.starts_with("UINT")  ? "whole number from 0 on"
                       : type.starts_with("INT") ? "whole number"
                                                 : "number");
  }
  if (said.ends_with(" missing")) return fmt::format("{}: a value has to follow", said.substr(0, said.find(':')));
  return said;
}

}  // namespace

void UseHelpFormat(CLI::App& app) { app.formatter(std::make_shared<HelpFormatter>()); }

std::string Wrapped(std::string_view text, size_t width, size_t indent) {
  std::string out;
  size_t column = 0;
  const auto feed = [&] {
    out += "\n" + std::string(indent, ' ');
    column = 0;
  };
  while (!text.empty()) {
    if (text.front() == '\n') {
      feed();
      text.remove_prefix(1);
      continue;
    }
    if (text.front() == ' ' && column > 0) {
      text.remove_prefix(1);
      continue;
    }
    // Leading blanks of a line stay with its first word.
    const size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    if (column > 0 && column + 1 + end > width) feed();
    if (column > 0) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(end);
  }
  return out;
}

std::string NoSuchVerb(const CLI::App& app, std::string_view word) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  const std::string_view near = scenario::Nearest(word, {names.begin(), names.end()});
  return fmt::format("wavetank: '{}' is no verb{}; `wavetank help` lists them", word,
                     near.empty() ? "" : fmt::format(": did you mean '{}'?", near));
}

std::string BadCall(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<const CLI::App*> called = app.get_subcommands([](const CLI::App* verb) { return verb->parsed(); });
  if (called.empty()) return fmt::format("wavetank: {}; `wavetank help` lists what there is", Reason(app, error));
  const CLI::App& verb = *called.front();
  return fmt::format("wavetank: {0}: {1}; `wavetank help {0}` lists what it takes", verb.get_name(),
                     Reason(verb, error));
}

}  // namespace wavetank::cli
