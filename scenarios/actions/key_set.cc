#include <fmt/format.h>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/web.h"

namespace wavetank::scenario {

void RegisterKeySet(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"keySet",
               "Change what istiods find at a jwksUri",
               {row::Text("uri", "A RequestAuthentication's jwksUri").Required(),
                row::Other("keys", FieldType::kTextOrObject, "The key set; none: no server answers there"),
                row::Text("issuer", "An issuer whose OpenID discovery names the URI")}},
       .example = "{uri: https://issuer.example/keys, keys: {keys: []}}",
       .what = "what istiods find there from the next refresh on (20 minutes; `core/security/jwks_cache.h`); "
               "no `keys`: no server answers; `issuer`: whose OpenID discovery names the URI",
       .describe =
           [](const Arguments& a) {
             return fmt::format("{} at {}", a.Has("keys") ? "a key set" : "no key set", a.Text("uri"));
           },
       .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
         return std::vector<sim::Input>{sim::inputs::ServeKeySet{a.Text("uri"), a.Json("keys"), a.Text("issuer")}};
       }});
}

}  // namespace wavetank::scenario
