from django.db import migrations


def fill(apps, schema_editor):
    owners = apps.get_model("django_project", "Owner").objects
    owners.create(name="made by the migration", note="it")


def empty(apps, schema_editor):
    apps.get_model("django_project", "Owner").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [("django_project", "0002_changes")]
    operations = [migrations.RunPython(fill, empty)]
