"""What Django's own test runner runs; pytest does not collect it."""

import threading
from datetime import datetime
from decimal import Decimal

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Count, F, Sum
from django.test import TestCase, TransactionTestCase, override_settings

import tique
from tests.tools.django_project.models import Account, Owner
from tique.django import retrying


class Rows(TestCase):
    """Each in a transaction that is rolled back."""

    @classmethod
    def setUpTestData(cls):
        cls.ada = Owner.objects.create(name="Ada")
        cls.account = Account.objects.create(
            owner=cls.ada, balance="5.50", extra={"a": [1, "1"], "b": None}
        )

    def test_the_connection_is_tiques(self):
        self.assertTrue(connection.connection.info.sequencer)

    def test_values(self):
        found = Account.objects.select_related("owner").get()
        self.assertEqual((found.balance, found.owner.name), (Decimal("5.50"), "Ada"))
        self.assertEqual(found.extra, {"a": [1, "1"], "b": None})
        self.assertIsNotNone(found.opened.tzinfo)
        self.assertEqual(found.address, "127.0.0.1")
        for path, value in (("extra__a__0", 1), ("extra__a__1", "1")):
            self.assertEqual(Account.objects.values_list(path, flat=True)[0], value)
        self.assertEqual(Account.objects.filter(extra__a__contains=[1]).count(), 1)
        self.assertEqual(Account.objects.filter(opened__year__gte=2020).count(), 1)
        self.assertEqual(Owner.objects.filter(name__icontains="aDA").count(), 1)

    def test_changes(self):
        Account.objects.update(balance=F("balance") + 1)
        owners = Owner.objects.annotate(
            number=Count("accounts"), sum=Sum("accounts__balance")
        )
        found = owners.get(name="Ada")
        self.assertEqual((found.number, found.sum), (1, Decimal("6.50")))
        self.account.friends.add(self.ada)
        self.assertEqual(list(self.account.friends.all()), [self.ada])
        self.assertEqual(self.ada.delete()[0], 3)
        self.assertEqual(Account.objects.count(), 0)

    def test_many_rows(self):
        Owner.objects.bulk_create([Owner(name=f"x{n}") for n in range(50)])
        Owner.objects.bulk_create(
            [Owner(name="x1", note="again")],
            update_conflicts=True,
            unique_fields=["name"],
            update_fields=["note"],
        )
        self.assertEqual(Owner.objects.get(name="x1").note, "again")
        names = [owner.name for owner in Owner.objects.iterator(chunk_size=7)]
        self.assertEqual(len(names), 52)
        found, made = Owner.objects.get_or_create(name="x2")
        self.assertEqual((found.name, made), ("x2", False))

    def test_constraints_and_savepoints(self):
        with self.assertRaises(IntegrityError), transaction.atomic():
            Owner.objects.create(name="Ada")
        with self.assertRaises(IntegrityError), transaction.atomic():
            Account.objects.create(owner=self.ada, balance=-1)
        locked = Account.objects.select_for_update().get()
        self.assertEqual(locked.pk, self.account.pk)

    def test_users(self):
        User.objects.create_user("ada", password="secret")
        self.assertTrue(self.client.login(username="ada", password="secret"))

    def test_the_catalog(self):
        with connection.cursor() as cursor:
            see = connection.introspection
            tables = see.table_names(cursor)
            self.assertIn("django_project_account", tables)
            self.assertFalse([name for name in tables if "tique" in name])
            self.assertEqual(
                see.get_relations(cursor, "django_project_account"),
                {
                    "guarantor_id": ("id", "django_project_owner"),
                    "owner_id": ("id", "django_project_owner"),
                },
            )
            kinds = see.get_constraints(cursor, "django_project_account").values()
        self.assertIn(
            (["owner_id"], ("django_project_owner", "id")),
            [(kind["columns"], kind["foreign_key"]) for kind in kinds],
        )

    def test_naive_times(self):
        with override_settings(USE_TZ=False):
            found = Account.objects.get().opened
            self.assertIsNone(found.tzinfo)
            self.assertLess(abs((datetime.now() - found).days), 2)


class Commits(TransactionTestCase):
    """Each in transactions of its own, after which the tables are emptied."""

    databases = ("default", "snapshot", "serializable")

    def test_numbers_begin_again(self):
        call_command("flush", interactive=False, verbosity=0)
        self.assertEqual(Owner.objects.create(name="first").pk, 1)

    def test_a_conflict_is_tried_again(self):
        Account.objects.create(owner=Owner.objects.create(name="hot"))
        seen = []

        def work():
            account = Account.objects.using("snapshot").get()
            seen.append(account.balance)
            if len(seen) < 3:
                Account.objects.update(balance=F("balance") + 1)
            account.balance *= 2
            account.save()
            return "done"

        self.assertEqual(retrying(work, using="snapshot"), "done")
        self.assertEqual(seen, [0, 1, 2])
        self.assertEqual(Account.objects.get().balance, 4)
        seen.clear()
        with self.assertRaises(OperationalError) as caught:
            retrying(work, using="snapshot", attempts=1)
        self.assertIsInstance(caught.exception.__cause__, tique.SerializationError)
        with transaction.atomic(), self.assertRaises(RuntimeError):
            retrying(work)

    def test_write_skew_is_tried_again(self):
        owner = Owner.objects.create(name="hot")
        seen = []

        def work():
            seen.append(Account.objects.using("serializable").count())
            if len(seen) == 1:
                Account.objects.create(owner=owner)
            found = Owner.objects.using("serializable").filter(pk=owner.pk)
            found.update(note=f"{seen[-1]} accounts")

        retrying(work, using="serializable")
        self.assertEqual(seen, [0, 1])
        self.assertEqual(Owner.objects.get().note, "1 accounts")

    def test_no_update_is_lost(self):
        owner = Owner.objects.create(name="hot")
        Account.objects.create(owner=owner)

        def client():
            try:
                for _ in range(5):
                    with transaction.atomic():
                        account = Account.objects.select_for_update().get()
                        account.balance += 1
                        account.save()
            finally:
                connection.close()

        threads = [threading.Thread(target=client) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(Account.objects.get().balance, 15)

    def test_migrations_go_back_and_forth(self):
        # Its row came with the migration; what the tests left is gone.
        for revision in ("0001", "zero", "0003"):
            call_command("migrate", "django_project", revision, verbosity=0)
        self.assertEqual(Owner.objects.get().note, "it")
        call_command("makemigrations", "--check", "--dry-run", verbosity=0)
