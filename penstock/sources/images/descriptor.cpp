#include "penstock/sources/images/picture_files.h"
#include "penstock/sources/kinds.h"

namespace penstock {

SourceKind images_source() {
  SourceSpec defaults;
  defaults.kind = "images";
  SourceKind kind{.name = defaults.kind,
                  .shown = "folders of pictures",
                  .prefixes = {"images:"},
                  .example = "images:FOLDER",
                  .files = true,
                  .settings = SettingsTable<SourceSpec>(defaults)};
  kind.install = "install Penstock anew: its plugin for pictures is missing";
  kind.to_build = "libjpeg62-turbo-dev libpng-dev libwebp-dev";
  kind.settings
      .own(
          &SourceSpec::own,
          SettingsTable<images::PictureSettings>()
              .text("labels", &images::PictureSettings::labels,
                    "a file of CSV or JSON lines with the path of each picture "
                    "below \"path\" and its class; without it, the folder that "
                    "it "
                    "is in is its class")
              .choice(
                  "listing", &images::PictureSettings::listing,
                  {{"auto", images::Listing::automatic},
                   {"kept", images::Listing::kept},
                   {"none", images::Listing::none}},
                  "whether the list of the pictures in class folders is kept "
                  "for the next start; auto: of 10,000 or more"))
      .text("path", &SourceSpec::path,
            "a folder with a folder for each class, a .tar file, or a pattern "
            "of such files")
      .required()
      .not_empty();
  return kind;
}

}  // namespace penstock
